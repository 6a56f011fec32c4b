// SPDX-License-Identifier: Apache-2.0
// The responder with real datagrams on loopback, and both ends of a session without RDMA; with
// RDMA: tests/lab/probes/verify_probe.cpp.
#include "vfmgr/proof/host/responder.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/os/random.hpp"
#include "api/os/socket_address.hpp"
#include "tests/unit/vfmgr/proof/host/offered.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;
// Tests run side by side, each in its process. The ports are below those that the kernel gives to
// sockets of other tests.
std::uint16_t const test_port = static_cast<std::uint16_t>(20000 + ::getpid() % 4000);

Result<void> anybody(SessionPermit const&) {
    return {};
}

SessionPermit permit_without_rdma(std::string attachment = "a1") {
    SessionPermit permit;
    permit.attachment = std::move(attachment);
    permit.run = random_hex(4);
    permit.nonce = random_hex(16);
    permit.peer_address = *IpAddress::parse("127.0.0.1");
    permit.host_address = *IpAddress::parse("127.0.0.1");
    permit.mtu = 1500;
    permit.rdma = RdmaMode::none;
    return permit;
}

SessionRequest request_of(SessionPermit const& permit) {
    return {permit.attachment, permit.run, permit.nonce, {}};
}

Subject subject_of(SessionPermit const& permit) {
    Subject subject;
    subject.attachment.attachment = permit.attachment;
    subject.attachment.run = permit.run;
    subject.attachment.nonce = permit.nonce;
    subject.attachment.address = permit.peer_address;
    subject.attachment.responder = permit.host_address;
    subject.attachment.mtu = permit.mtu;
    subject.attachment.rdma = permit.rdma;
    subject.attachment.echo_port = test_port;
    return subject;
}

struct Responding : testing::Test {
    ResponderLimits limits;
    std::unique_ptr<Responder> responder;

    void SetUp() override {
        limits.echo_port = test_port;
        start();
    }
    void start() {
        responder.reset();
        auto started = Responder::start(limits, anybody);
        ASSERT_TRUE(started);
        responder = std::move(*started);
    }
    Result<SessionOffer> open(SessionPermit const& permit, SessionRequest const& request) {
        return test::offered(responder->open(permit, request));
    }
};

TEST_F(Responding, BothEndsAgreeOverLoopback) {
    auto const permit = permit_without_rdma();
    auto session = GuestSession::prepare(subject_of(permit));
    ASSERT_TRUE(session);
    auto const offer = open(permit, (*session)->request());
    ASSERT_TRUE(offer) << offer.error().detail;
    auto const report = (*session)->run(*offer);
    auto const verification = responder->close(offer->session, report);
    ASSERT_TRUE(verification);
    EXPECT_EQ(verification->verdict, Verdict::not_applicable) << verification->detail;
    ASSERT_GE(verification->tests.size(), 2U);
    EXPECT_EQ(verification->tests[0].verdict, Verdict::pass) << verification->tests[0].detail;
    EXPECT_EQ(verification->tests[0].figures.at("answered"), 3);
    EXPECT_EQ(verification->tests[1].verdict, Verdict::pass) << verification->tests[1].detail;
    EXPECT_EQ(verification->tests[1].bytes_checked, 1472U);
    EXPECT_EQ(responder->load().sessions, 0U);
}

TEST_F(Responding, ASilentGuestFails) {
    auto const permit = permit_without_rdma();
    auto const offer = open(permit, request_of(permit));
    ASSERT_TRUE(offer);
    GuestReport report;
    report.nonce = permit.nonce;
    auto const verification = responder->close(offer->session, report);
    ASSERT_TRUE(verification);
    EXPECT_EQ(verification->verdict, Verdict::fail);
    EXPECT_THAT(verification->detail, HasSubstr("no datagram of this run came from 127.0.0.1"));
}

TEST_F(Responding, ASessionEndsOnce) {
    auto const permit = permit_without_rdma();
    auto const offer = open(permit, request_of(permit));
    ASSERT_TRUE(offer);
    ASSERT_TRUE(responder->close(offer->session, {}));
    auto const again = responder->close(offer->session, {});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().problem, Problem::not_found);
}

TEST_F(Responding, TheRequestMustBeOfThePermit) {
    auto const permit = permit_without_rdma();
    auto const refused = [&](SessionRequest const& request) {
        auto const offer = open(permit, request);
        return offer ? std::string() : offer.error().detail;
    };
    auto request = request_of(permit);
    request.nonce = "another";
    EXPECT_THAT(refused(request), HasSubstr("nonce is not that of run"));
    request = request_of(permit);
    request.run = "another";
    EXPECT_THAT(refused(request), HasSubstr("run is not that of run"));
    request = request_of(permit);
    request.attachment = "another";
    EXPECT_THAT(refused(request), HasSubstr("attachment is not that of run"));
    EXPECT_EQ(responder->load().sessions, 0U);
}

TEST_F(Responding, AnotherNicsGidIsRefused) {
    auto permit = permit_without_rdma();
    permit.rdma = RdmaMode::rxe;
    auto request = request_of(permit);
    request.guest.gid = gid_hex(IpAddress::parse("10.0.0.9")->gid());
    auto const offer = open(permit, request);
    ASSERT_FALSE(offer);
    EXPECT_EQ(offer.error().problem, Problem::forbidden);
    EXPECT_THAT(offer.error().detail, HasSubstr("is not 00000000000000000000ffff7f000001"));
}

TEST_F(Responding, APermitWithoutNonceIsNone) {
    auto permit = permit_without_rdma();
    permit.nonce.clear();
    EXPECT_FALSE(open(permit, request_of(permit)));
}

TEST_F(Responding, SessionsAreCounted) {
    limits.sessions_max = 2;
    start();
    std::vector<SessionPermit> permits;
    for (auto const* id : {"a1", "a2", "a3"}) permits.push_back(permit_without_rdma(id));
    ASSERT_TRUE(open(permits[0], request_of(permits[0])));
    auto const second = open(permits[1], request_of(permits[1]));
    ASSERT_TRUE(second);
    auto const third = open(permits[2], request_of(permits[2]));
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().detail, "turn 1");
    // The same attachment again takes the place of its own session.
    ASSERT_TRUE(open(permits[0], request_of(permits[0])));
    responder->drop(second->session);
    EXPECT_EQ(responder->load().sessions, 1U);
    EXPECT_TRUE(open(permits[2], request_of(permits[2])));
}

TEST_F(Responding, TimeEndsASession) {
    limits.session_seconds_max = 0;
    start();
    auto const permit = permit_without_rdma();
    auto const offer = open(permit, request_of(permit));
    ASSERT_TRUE(offer);
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (responder->load().sessions != 0 && std::chrono::steady_clock::now() < deadline)
        ::poll(nullptr, 0, 1);
    EXPECT_EQ(responder->load().sessions, 0U);
    EXPECT_EQ(responder->close(offer->session, {}).error().problem, Problem::not_found);
}

TEST_F(Responding, AWrongNeighbourIsRefusedBeforeAnythingOpens) {
    auto started = Responder::start(limits, [](SessionPermit const&) -> Result<void> {
        return fail(Problem::conflict, "wrong neighbour", "");
    });
    ASSERT_TRUE(started);
    auto const permit = permit_without_rdma();
    auto const offer = (*started)->open(permit, request_of(permit));
    ASSERT_FALSE(offer);
    EXPECT_EQ(offer.error().detail, "wrong neighbour");
}

// --- streams by RDMA CM -----------------------------------------------------------------------

// Counts what happens to streams; the counts outlive them.
struct CmStreams {
    int opened = 0, ended = 0, destroyed = 0;
};

class FakeCmStream final : public StreamEnd {
  public:
    explicit FakeCmStream(CmStreams& told) : StreamEnd(0), told_(told) {
        offer_.cm_port = 45671;
        ++told_.opened;
    }
    ~FakeCmStream() override { ++told_.destroyed; }
    StreamFacts stop() override {
        ++told_.ended;
        return {.messages = 10};
    }

  private:
    CmStreams& told_;
};

struct RespondingByCm : Responding {
    CmStreams streams;
    SessionPermit permit = permit_without_rdma();
    std::string session;
    StreamRequest const request{StreamKind::cm_ping, 64, 1, {}, {}};

    void SetUp() override {
        limits.echo_port = test_port;
        responder =
            Responder::start(limits, anybody,
                             [this](SessionPermit const& whose, StreamRequest const& asked,
                                    ResponderLimits const&) -> Result<std::unique_ptr<StreamEnd>> {
                                 EXPECT_EQ(whose, permit);
                                 EXPECT_EQ(asked, request);
                                 return std::make_unique<FakeCmStream>(streams);
                             })
                .value();
        open_session();
    }
    void open_session() { session = open(permit, request_of(permit)).value().session; }
    Result<StreamOffer> open_stream() {
        return test::offered(responder->open_stream(session, request));
    }
};

TEST_F(RespondingByCm, AStreamIsThatOfWhoRunsTheResponder) {
    auto const offer = open_stream();
    ASSERT_TRUE(offer) << offer.error().detail;
    EXPECT_EQ(offer->cm_port, 45671);
    auto const second = open_stream();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().problem, Problem::limit_exceeded);
    responder->close_stream(session, offer->stream);
    EXPECT_EQ(streams.ended, 1);
    EXPECT_EQ(streams.destroyed, 1);
    EXPECT_TRUE(open_stream());
    EXPECT_EQ(streams.opened, 2);
}

TEST_F(RespondingByCm, AStreamEndsWithItsSession) {
    ASSERT_TRUE(open_stream());
    ASSERT_TRUE(responder->close(session, {}));
    EXPECT_EQ(streams.ended, 1);
    EXPECT_EQ(streams.destroyed, 1);
    open_session();
    ASSERT_TRUE(open_stream());
    responder->drop(session);
    EXPECT_EQ(streams.destroyed, 2);
    open_session();
    ASSERT_TRUE(open_stream());
    responder.reset();
    EXPECT_EQ(streams.destroyed, 3);
}

// A thread that waits for datagrams keeps the port of a socket that is closed meanwhile.
TEST_F(RespondingByCm, ASessionOpensRightAfterTheLast) {
    for (int i = 0; i < 3000; ++i) {
        for (int turn = 0; turn < 100; ++turn) std::this_thread::yield();  // until it waits
        responder->drop(session);
        open_session();
    }
    EXPECT_EQ(responder->load().sessions, 1U);
}

// Others may spin meanwhile: a stream takes no CPU that they would miss.
TEST_F(RespondingByCm, AStreamIsNoneOfThoseThatSpin) {
    limits.echoes_max = 0;
    SetUp();
    EXPECT_TRUE(open_stream());
}

TEST_F(Responding, WithoutRdmaCmItIsUnsupported) {
    auto const permit = permit_without_rdma();
    auto const offer = open(permit, request_of(permit));
    ASSERT_TRUE(offer);
    auto const stream =
        responder->open_stream(offer->session, {StreamKind::cm_ping, 64, 1, {}, {}});
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().problem, Problem::unsupported);
}

// --- datagrams -------------------------------------------------------------------------------

struct Asking {
    FileDescriptor fd;
    explicit Asking(char const* from) {
        auto opened = open_socket({*IpAddress::parse(from), 0, ""});
        EXPECT_TRUE(opened);
        fd = std::move(*opened);
        auto const to = SocketAddress::of(*IpAddress::parse("127.0.0.1"), test_port);
        EXPECT_EQ(::connect(fd.get(), to.get(), to.length), 0);
    }
    void send(std::vector<std::byte> const& datagram) const {
        EXPECT_EQ(::send(fd.get(), datagram.data(), datagram.size(), 0),
                  static_cast<ssize_t>(datagram.size()));
    }
    // Returns the bytes of the next answer; 0 when none comes in `milliseconds`.
    [[nodiscard]] std::size_t answer(int milliseconds) const {
        pollfd readable{fd.get(), POLLIN, 0};
        if (::poll(&readable, 1, milliseconds) <= 0) return 0;
        std::vector<std::byte> room(65536);
        auto const got = ::recv(fd.get(), room.data(), room.size(), 0);
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }
};

TEST_F(Responding, OnlyTheRunsNonceFromTheVfsAddressIsAnswered) {
    auto const permit = permit_without_rdma();
    auto const offer = open(permit, request_of(permit));
    ASSERT_TRUE(offer);
    auto const good = make_question({EchoKind::reachability, permit.nonce, 256});
    Asking const vf("127.0.0.1");
    Asking const another_nic("127.0.0.2");
    another_nic.send(good);
    vf.send(make_question({EchoKind::reachability, "guessed", 256}));
    vf.send({std::byte{1}, std::byte{2}});
    vf.send(good);
    EXPECT_EQ(vf.answer(5000), 256U);
    EXPECT_EQ(vf.answer(0), 0U);
    EXPECT_EQ(another_nic.answer(0), 0U);
}

TEST_F(Responding, AnswersAreLimited) {
    limits.echo_datagrams_max = 3;
    start();
    auto const permit = permit_without_rdma();
    ASSERT_TRUE(open(permit, request_of(permit)));
    auto const question = make_question({EchoKind::reachability, permit.nonce, 64});
    Asking const vf("127.0.0.1");
    for (int i = 0; i < 3; ++i) {
        vf.send(question);
        EXPECT_EQ(vf.answer(5000), 64U);
    }
    vf.send(question);
    EXPECT_EQ(vf.answer(200), 0U);
}

TEST_F(Responding, TheSocketGoesWithItsLastSession) {
    auto const permit = permit_without_rdma();
    auto const offer = open(permit, request_of(permit));
    ASSERT_TRUE(offer);
    auto const address = permit.host_address;
    EXPECT_FALSE(open_socket({address, test_port, ""}));
    responder->drop(offer->session);
    // A thread that waits on the socket may hold it a moment longer.
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!open_socket({address, test_port, ""}) && std::chrono::steady_clock::now() < deadline)
        ::poll(nullptr, 0, 1);
    EXPECT_TRUE(open_socket({address, test_port, ""}));
}

}  // namespace
}  // namespace vfmgr::verify
