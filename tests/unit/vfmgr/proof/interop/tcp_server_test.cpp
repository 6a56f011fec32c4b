// SPDX-License-Identifier: Apache-2.0
// Clients that never get to a test, against the server on the loopback device, without RDMA. Those
// that get there are in the lab: its scenario interop-clients.
#include "vfmgr/proof/interop/interop_responder.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "api/os/socket_address.hpp"
#include "tests/unit/no_descriptors_left.hpp"
#include "vfmgr/proof/interop/interop_responder.hpp"
#include "vfmgr/proof/interop/lines.hpp"

namespace vfmgr::interop {
namespace {

using namespace std::string_literals;
using Steady = std::chrono::steady_clock;
auto const loopback = IpAddress::parse("127.0.0.1").value();
auto const another = IpAddress::parse("127.0.0.2").value();
auto const hello = "6.06"s + std::string(12, '\0');

Deadline soon() {
    return Steady::now() + std::chrono::seconds(20);
}

Terms terms_for(IpAddress const& peer, std::chrono::milliseconds time = std::chrono::seconds(60)) {
    Terms terms;
    terms.permit.attachment = "3f9c2a1b";
    terms.permit.peer_address = peer;
    terms.permit.host_address = loopback;
    terms.until = Steady::now() + time;
    terms.tcp_port = 0;
    return terms;
}

TcpStream call(TcpServer const& server) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto const where = SocketAddress::of(loopback, server.port());
    EXPECT_EQ(::connect(socket.get(), where.get(), where.length), 0);
    return TcpStream(std::move(socket));
}

// Checks that the server has ended the conversation, and not only fallen silent.
bool hangs_up(TcpStream& client, Deadline deadline) {
    auto const answer = client.read(1, deadline);
    return !answer && answer.error().problem == Problem::unavailable;
}

struct TcpServerTest : testing::Test {
    Shares shares;
    std::unique_ptr<TcpServer> server = TcpServer::start(terms_for(loopback), shares).value();
};

TEST_F(TcpServerTest, AnswersWithItsVersion) {
    auto client = call(*server);
    ASSERT_TRUE(client.write(hello, soon()));
    EXPECT_EQ(client.read(perftest_version_bytes, soon()).value(), hello);
    // Page and cache line; both ends use the larger.
    ASSERT_TRUE(client.write("\0\0\x10\0\0\0\0\x40"s, soon()));
    EXPECT_EQ(client.read(8, soon()).value(), "\0\0\x10\0\0\0\0\x40"s);
    EXPECT_EQ(server->served().served, 0U);
}

TEST_F(TcpServerTest, HangsUpOnNonsense) {
    auto client = call(*server);
    ASSERT_TRUE(client.write(std::string(pingpong_line_bytes, 'x'), soon()));
    EXPECT_TRUE(hangs_up(client, soon()));
    while (server->served().refused == 0) ASSERT_LT(Steady::now(), soon());
}

TEST_F(TcpServerTest, HangsUpOnAnotherMtu) {
    auto client = call(*server);
    ASSERT_TRUE(client.write(hello + "\0\0\x10\0\0\0\0\x40"s + "9\0"s, soon()));
    ASSERT_TRUE(client.read(perftest_version_bytes + 8, soon()));
    EXPECT_TRUE(hangs_up(client, soon()));
}

TEST_F(TcpServerTest, TheSlowOneGoes) {
    auto client = call(*server);
    ASSERT_TRUE(client.write("6.0", soon()));
    auto const began = Steady::now();
    EXPECT_TRUE(hangs_up(client, soon()));
    EXPECT_GT(Steady::now() - began, handshake_time / 2);
}

// Each of them would keep its place for the whole handshake.
TEST_F(TcpServerTest, TheOldestOfTooManyGoes) {
    std::vector<TcpStream> silent;
    for (std::size_t i = 0; i < conversations_max; ++i) silent.push_back(call(*server));
    auto const began = Steady::now();
    auto newest = call(*server);
    ASSERT_TRUE(newest.write(hello, soon()));
    EXPECT_TRUE(newest.read(perftest_version_bytes, soon()));
    EXPECT_TRUE(hangs_up(silent.front(), soon()));
    EXPECT_LT(Steady::now() - began, handshake_time);
    EXPECT_FALSE(hangs_up(silent.back(), Steady::now() + std::chrono::milliseconds(10)));
}

// A client that is not taken out of the queue keeps the server's thread busy.
TEST_F(TcpServerTest, TurnsClientsAwayWhereDescriptorsAreScarce) {
    auto first = call(*server);
    ASSERT_TRUE(first.write(hello, soon()));
    ASSERT_TRUE(first.read(perftest_version_bytes, soon()));
    FileDescriptor waiting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    {
        test::NoDescriptorsLeft const none;
        auto const where = SocketAddress::of(loopback, server->port());
        ASSERT_EQ(::connect(waiting.get(), where.get(), where.length), 0);
        TcpStream client(std::move(waiting));
        // Before the other client's handshake ends, which frees a descriptor.
        EXPECT_TRUE(hangs_up(client, Steady::now() + handshake_time / 2));
    }
    auto after = call(*server);
    ASSERT_TRUE(after.write(hello, soon()));
    EXPECT_TRUE(after.read(perftest_version_bytes, soon()));
}

TEST(TcpServer, AnotherAddressIsNotServed) {
    Shares shares;
    auto const server = TcpServer::start(terms_for(another), shares).value();
    auto client = call(*server);
    // The server closes any silent connection in the end. Whether this arrives does not matter.
    static_cast<void>(client.write(hello, soon()));
    EXPECT_TRUE(hangs_up(client, soon())) << "it was answered";
    while (server->served().refused == 0) ASSERT_LT(Steady::now(), soon());
}

TEST(TcpServer, EndsWithItsTime) {
    Shares shares;
    auto const server =
        TcpServer::start(terms_for(loopback, std::chrono::milliseconds(300)), shares).value();
    auto client = call(*server);
    ASSERT_TRUE(client.write(hello, soon()));
    ASSERT_TRUE(client.read(perftest_version_bytes, soon()));
    EXPECT_TRUE(hangs_up(client, soon()));
}

TEST(TcpServer, NamesAPortThatIsTaken) {
    Shares shares;
    auto const first = TcpServer::start(terms_for(loopback), shares).value();
    auto terms = terms_for(loopback);
    terms.tcp_port = first->port();
    auto const second = TcpServer::start(terms, shares);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().causes.at(0).code, "EADDRINUSE");
    EXPECT_NE(second.error().remedy.find(std::to_string(first->port())), std::string::npos);
}

TEST(InteropCommands, AreThoseOfTheTest) {
    InteropRequest request;
    EXPECT_EQ(interop_commands(loopback, request, true).front(), "rping -c -a 127.0.0.1");
    EXPECT_EQ(interop_commands(loopback, request, false).size(), 4U);
    request.test = InteropTest::write_echo;
    request.message_bytes = 2;
    EXPECT_EQ(interop_commands(loopback, request, false).back(), "ib_write_lat -s 2 127.0.0.1");
}

// --- the whole responder, opened and closed ------------------------------------------------

struct InteropResponderTest : testing::Test {
    std::atomic<bool> attached = true;
    InteropResponder responder{
        {.guests_max = 1, .tcp_port = 0, .cm_port = 0, .rping_program = {"/bin/false"}},
        system_clock(),
        {[](verify::SessionPermit const&) -> Result<void> { return {}; },
         [this](verify::SessionPermit const&) { return attached.load(); }}};

    Result<InteropWindow> open(std::string const& attachment, InteropRequest const& request) {
        auto permit = terms_for(loopback).permit;
        permit.attachment = attachment;
        std::promise<Result<InteropWindow>> opened;
        responder.open(permit, request, [&](auto const& told) { opened.set_value(told); });
        return opened.get_future().get();
    }
    bool close(std::string const& attachment) {
        std::promise<bool> closed;
        responder.close(attachment, [&](bool told) { closed.set_value(told); });
        return closed.get_future().get();
    }
    void await_closed(std::string const& attachment) const {
        auto const deadline = soon();
        while (responder.find(attachment)) ASSERT_LT(Steady::now(), deadline);
    }
};

TEST_F(InteropResponderTest, IsOpenedLookedAtAndClosed) {
    EXPECT_FALSE(responder.find("a"));
    auto const opened = open("a", {});
    ASSERT_TRUE(opened) << opened.error().detail;
    EXPECT_EQ(opened->address, loopback);
    EXPECT_EQ(opened->rping, "rping's server ended without a result");
    EXPECT_GT(opened->open_until, system_clock().now() + std::chrono::seconds(500));
    EXPECT_EQ(responder.find("a"), opened.value());
    EXPECT_TRUE(close("a"));
    EXPECT_FALSE(responder.find("a"));
    EXPECT_FALSE(close("a"));
}

TEST_F(InteropResponderTest, ASecondRequestReplacesTheFirst) {
    ASSERT_TRUE(open("a", {}));
    InteropRequest const other{60, InteropTest::send_echo, 4096};
    ASSERT_TRUE(open("a", other));
    EXPECT_EQ(responder.find("a")->test, InteropTest::send_echo);
}

TEST_F(InteropResponderTest, ServesNoMoreGuestsThanAllowed) {
    ASSERT_TRUE(open("a", {}));
    auto const second = open("b", {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().problem, Problem::limit_exceeded);
}

TEST_F(InteropResponderTest, EndsWithItsTime) {
    ASSERT_TRUE(open("a", {1, InteropTest::one_sided, 1}));
    await_closed("a");
}

TEST_F(InteropResponderTest, EndsWithTheAttachment) {
    ASSERT_TRUE(open("a", {}));
    responder.observe_again();
    EXPECT_TRUE(open("a", {}));
    attached = false;
    responder.observe_again();
    await_closed("a");
}

TEST_F(InteropResponderTest, NetworksWithoutRdmaHaveNone) {
    auto permit = terms_for(loopback).permit;
    permit.rdma = RdmaMode::none;
    std::promise<Result<InteropWindow>> opened;
    responder.open(permit, {}, [&](auto const& told) { opened.set_value(told); });
    auto const told = opened.get_future().get();
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().problem, Problem::conflict);
}

}  // namespace
}  // namespace vfmgr::interop
