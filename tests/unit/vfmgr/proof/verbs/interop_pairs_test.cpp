// SPDX-License-Identifier: Apache-2.0
// A perftest client that requests ever more queue pairs, over an in-process device.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>

#include "api/os/socket_address.hpp"
#include "tests/fakes/verbs/fabric.hpp"
#include "vfmgr/proof/interop/interop_responder.hpp"
#include "vfmgr/proof/interop/lines.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::interop {
namespace {

using namespace std::string_literals;
auto const loopback = IpAddress::parse("127.0.0.1").value();
// Version, page, cache line and path MTU.
auto const handshake = "6.06"s + std::string(12, '\0') + "\0\0\x10\0\0\0\0\x40"s + "3\0"s;

Deadline soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

struct InteropPairs : testing::Test {
    Shares shares;
    std::unique_ptr<TcpServer> server;

    void SetUp() override { fakes::plug_in({loopback.gid()}); }
    void TearDown() override {
        server.reset();
        EXPECT_EQ(fakes::alive(), 0U);
        EXPECT_EQ(shares.taken().pairs, 0U);
        EXPECT_EQ(shares.taken().descriptors, 0U);
    }
    void serve(InteropTest test, std::uint32_t message_bytes) {
        Terms terms;
        terms.permit.attachment = "3f9c2a1b";
        terms.permit.peer_address = terms.permit.host_address = loopback;
        terms.request.test = test;
        terms.request.message_bytes = message_bytes;
        terms.until = soon() + std::chrono::seconds(60);
        terms.tcp_port = 0;
        server = TcpServer::start(terms, shares).value();
    }
    [[nodiscard]] TcpStream call() const {
        FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        auto const where = SocketAddress::of(loopback, server->port());
        EXPECT_EQ(::connect(socket.get(), where.get(), where.length), 0);
        TcpStream client(std::move(socket));
        EXPECT_TRUE(client.write(handshake, soon()));
        EXPECT_TRUE(client.read(handshake.size(), soon()));
        return client;
    }
    // Returns how many queue pairs a client gets that requests `most`.
    static std::size_t pairs(TcpStream& client, std::size_t most) {
        PerftestLine line;
        line.end.gid = verify::gid_hex(loopback.gid());
        line.end.reads_max = 1;
        for (std::size_t got = 0; got < most; ++got) {
            line.end.qp_num = static_cast<std::uint32_t>(0x200 + got);
            auto const asked = client.write(make_perftest_line(line), soon());
            if (!asked || !client.read(perftest_line_bytes, soon())) return got;
        }
        return most;
    }
};

// 16 MiB are eight million messages of 2 bytes.
TEST_F(InteropPairs, MessagesOfTwoBytesDoNotMakeThemMany) {
    serve(InteropTest::one_sided, 2);
    std::vector<TcpStream> clients;
    std::size_t all = 0;
    for (int i = 0; i < 4; ++i) {
        clients.push_back(call());
        all += pairs(clients.back(), 20);
    }
    EXPECT_EQ(all, ShareLimits().each.pairs);
    clients.clear();
    while (shares.taken().pairs > 0) ASSERT_LT(std::chrono::steady_clock::now(), soon());
    auto later = call();
    EXPECT_EQ(pairs(later, 10), 10U);
}

// perftest's client puts each one a cache line further, until the page it announced is full.
TEST_F(InteropPairs, ShortMessagesHaveAPageToWalkThrough) {
    for (auto const& [message, memory] :
         {std::pair(2U, 4096U), {4096U, 4096U}, {65'536U, 65'536U}}) {
        serve(InteropTest::one_sided, message);
        auto client = call();
        PerftestLine line;
        line.end.gid = verify::gid_hex(loopback.gid());
        line.end.reads_max = 1;
        ASSERT_TRUE(client.write(make_perftest_line(line), soon()));
        auto const told = parse_perftest_line(client.read(perftest_line_bytes, soon()).value());
        ASSERT_TRUE(told);
        {
            // The server's thread may give its memory back meanwhile.
            auto& objects = fakes::objects();
            std::lock_guard const lock(objects.mutex);
            EXPECT_TRUE(std::ranges::any_of(objects.regions, [&](fakes::Region const& each) {
                return each.verbs.rkey == told->memory.rkey && each.verbs.length >= memory;
            })) << message;
        }
        server.reset();
    }
}

TEST_F(InteropPairs, ThoseThatTakeACpuAreFew) {
    serve(InteropTest::send_echo, 2);
    auto client = call();
    EXPECT_EQ(pairs(client, 20), ShareLimits().each.spinning);
}

TEST_F(InteropPairs, AnEchoOfWritesHasOne) {
    serve(InteropTest::write_echo, 2);
    auto client = call();
    EXPECT_EQ(pairs(client, 20), 1U);
}

}  // namespace
}  // namespace vfmgr::interop
