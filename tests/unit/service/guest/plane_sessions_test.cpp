// SPDX-License-Identifier: Apache-2.0
// Runs and sessions of honest and of hostile VMs.
#include "tests/unit/service/guest/plane_harness.hpp"

namespace vfmgr::plane_test {
namespace {

// --- runs and sessions ------------------------------------------------------------------------

TEST_F(Plane, ARunIsProvedAndItsVerdictDelivered) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    auto const expected = config().attachments[0];
    EXPECT_EQ(expected.run, "r1");
    EXPECT_EQ(expected.nonce, "n1");
    auto session = verify::GuestSession::prepare({expected, ""});
    ASSERT_TRUE(session);
    auto const opened = ask("POST", "/guest/v1/sessions", body_of((*session)->request()));
    ASSERT_EQ(opened.status, 201) << opened.body;
    auto const offer = from_json_text<SessionOffer>(opened.body).value();
    auto const closed = ask("PUT", "/guest/v1/sessions/" + offer.session + "/report",
                            body_of((*session)->run(offer)));
    ASSERT_EQ(closed.status, 200) << closed.body;
    auto const verification = from_json_text<Verification>(closed.body).value();
    EXPECT_EQ(verification.tests[0].verdict, Verdict::pass);
    EXPECT_EQ(verification.run, "r1");
    EXPECT_TRUE(verification.finished_at);
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_EQ(verdicts()[0].run, "r1");
    EXPECT_EQ(verdicts()[0].attachment, "a1");
}

TEST_F(Plane, APassWithoutTrafficIsAFail) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    auto const offer = from_json_text<SessionOffer>(open("r1", "n1").body).value();
    GuestReport report;
    report.nonce = "n1";
    TestResult claim;
    claim.name = "reachability";
    claim.verdict = Verdict::pass;
    report.tests = {claim};
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/" + offer.session + "/report", body_of(report)).status,
              200);
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_EQ(verdicts()[0].verdict, Verdict::fail);
    EXPECT_THAT(verdicts()[0].detail, HasSubstr("the guest claims a pass"));
}

TEST_F(Plane, WithoutARunThereIsNoSession) {
    EXPECT_EQ(open("r1", "n1").status, 404);
    EXPECT_EQ(open("", "").status, 404);
    EXPECT_TRUE(verdicts().empty());
}

TEST_F(Plane, AnotherVmsRunAndSessionAreOutOfReach) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    http::Peer const b = http::VsockPeer{cid_b, 1};
    EXPECT_EQ(ask("POST", "/guest/v1/sessions",
                  body_of(SessionRequest{"a1", "r1", "n1", queue_pair()}), b)
                  .status,
              404);
    auto const offer = from_json_text<SessionOffer>(open("r1", "n1").body).value();
    GuestReport report;
    report.nonce = "n1";
    EXPECT_EQ(
        ask("PUT", "/guest/v1/sessions/" + offer.session + "/report", body_of(report), b).status,
        404);
    EXPECT_EQ(ask("PUT", "/guest/v1/runs/r1/error", body_of(report), b).status, 404);
    EXPECT_EQ(ask("POST", "/guest/v1/attachments/a1/runs", {}, b).status, 404);
    EXPECT_TRUE(verdicts().empty());
    EXPECT_EQ(responder->load().sessions, 1U);
}

TEST_F(Plane, TheNextVmWithTheSameCidGetsNothingOfTheOldOne) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    auto const offer = from_json_text<SessionOffer>(open("r1", "n1").body).value();
    change([](Daemon& d) { d.vms[cid_a] = {"uuid-a", "a", 5}; });
    GuestReport report;
    report.nonce = "n1";
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/" + offer.session + "/report", body_of(report)).status,
              404);
}

TEST_F(Plane, AVmThatStopsLosesItsSessionAndItsPoll) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    ASSERT_EQ(open("r1", "n1").status, 201);
    auto const revision = std::to_string(config().revision);
    auto poll = send({"GET",
                      "/guest/v1/config",
                      {{"wait", "30"}, {"revision", revision}},
                      {},
                      {},
                      http::VsockPeer{cid_a, 700}});
    EXPECT_EQ(poll.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    // The VM's next life has the same UUID and CID.
    change([](Daemon& d) { d.vms[cid_a] = {"uuid-a", "a", 5}; });
    ASSERT_EQ(poll.wait_for(seconds(20)), std::future_status::ready);
    EXPECT_EQ(poll.get().status, 404);
    auto const deadline = std::chrono::steady_clock::now() + seconds(20);
    while (responder->load().sessions != 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    EXPECT_EQ(responder->load().sessions, 0U);
}

// The cached view of the VMs may be older than the VM: libvirt is queried before anything changes.
TEST_F(Plane, OnlyAChangeAsksWhoItIsOnceMore) {
    config();
    ask("GET", "/guest/v1/topology");
    EXPECT_EQ(daemon.confirmed, 0U);
    ASSERT_EQ(ask("POST", "/guest/v1/attachments/a1/runs").status, 201);
    EXPECT_EQ(daemon.confirmed, 1U);
    auto const known = daemon.vms.at(cid_a);
    plane.reset();
    start([known](std::uint32_t) -> Result<VmIdentity> { return known; });
    change([](Daemon& d) { d.vms[cid_a] = {"uuid-a", "a", 5}; });
    for (auto const* path :
         {"/guest/v1/attachments/a1/runs", "/guest/v1/sessions", "/guest/v1/sessions/s/streams"})
        EXPECT_EQ(ask("POST", path, "{}").status, 404) << path;
    EXPECT_EQ(ask("DELETE", "/guest/v1/sessions/s/streams/t").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/s/report", "{}").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/runs/r1/error", "{}").status, 404);
    EXPECT_EQ(daemon.tickets.size(), 1U);
}

TEST_F(Plane, AWrongNonceOpensNothing) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    EXPECT_EQ(open("r1", "n2").status, 403);
    EXPECT_EQ(responder->load().sessions, 0U);
    EXPECT_TRUE(verdicts().empty());
}

TEST_F(Plane, BadBodiesAreNamed) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    EXPECT_EQ(ask("POST", "/guest/v1/sessions", "{").status, 400);
    EXPECT_EQ(ask("POST", "/guest/v1/sessions", "[]").status, 422);
    EXPECT_EQ(ask("PUT", "/guest/v1/runs/r1/error", R"({"nonce": 1})").status, 422);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/none/report", "null").status, 422);
}

TEST_F(Plane, DetachEndsTheSession) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    ASSERT_EQ(open("r1", "n1").status, 201);
    EXPECT_EQ(responder->load().sessions, 1U);
    change([](Daemon& d) { d.access["uuid-a"] = {}; });
    auto const deadline = std::chrono::steady_clock::now() + seconds(20);
    while (responder->load().sessions != 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    EXPECT_EQ(responder->load().sessions, 0U);
}

// The change is observed before the session exists: no later observation would end it.
TEST_F(Plane, DetachWhileASessionOpensEndsIt) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    plane.reset();
    verify::ResponderLimits responder_limits;
    responder_limits.echo_port = echo_port();
    responder.reset();
    responder = verify::Responder::start(responder_limits, [this](auto const&) -> Result<void> {
                    std::lock_guard const lock(daemon.mutex);
                    daemon.access["uuid-a"] = {};
                    return {};
                }).value();
    start();
    EXPECT_EQ(open("r1", "n1").status, 404);
    EXPECT_EQ(responder->load().sessions, 0U);
    EXPECT_TRUE(verdicts().empty());
}

TEST_F(Plane, WhoHasToWaitIsToldItsTurnAndFailsNothing) {
    limits.sessions = {.burst = 2, .per_second = 0.001};
    start();
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    for (std::size_t i = 0; i < verify::ResponderLimits().sessions_max; ++i) {
        verify::SessionPermit other;
        other.attachment = "other" + std::to_string(i);
        other.nonce = "n";
        other.host_address = other.peer_address = *IpAddress::parse("127.0.0.1");
        other.rdma = RdmaMode::none;
        ASSERT_TRUE(responder->open(other, {other.attachment, "", "n", {}}));
    }
    for (int i = 0; i < 5; ++i) {
        auto const answer = open("r1", "n1");
        ASSERT_EQ(answer.status, 202) << answer.body;
        EXPECT_EQ(from_json_text<Turn>(answer.body)->position, 1U);
    }
    EXPECT_TRUE(verdicts().empty());
    // A guest of a version without turns would read the turn as an offer.
    SessionRequest const request{"a1", "r1", "n1", queue_pair()};
    auto const older = send({"POST",
                             "/guest/v1/sessions",
                             {},
                             {{"prefer", ""}},
                             body_of(request),
                             http::VsockPeer{cid_a, 700}})
                           .get();
    EXPECT_EQ(older.status, 503);
    EXPECT_EQ(older.headers.at("Retry-After"), "1");
    EXPECT_THAT(older.body, HasSubstr("no place is free yet: position 1 in the queue, about 1 s"));
    EXPECT_THAT(older.body, HasSubstr("vf-guest of the host's version waits by itself"));
    EXPECT_TRUE(verdicts().empty());
}

TEST_F(Plane, AGuestThatCantTestSaysWhy) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    GuestReport report;
    report.nonce = "n1";
    report.error = "this VM has no netdev with MAC 52:54:00:11:22:33";
    ASSERT_EQ(ask("PUT", "/guest/v1/runs/r1/error", body_of(report)).status, 200);
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_EQ(verdicts()[0].verdict, Verdict::fail);
    EXPECT_EQ(
        verdicts()[0].detail,
        "the guest could not run the tests: this VM has no netdev with MAC 52:54:00:11:22:33");
    report.nonce = "n2";
    EXPECT_EQ(ask("PUT", "/guest/v1/runs/r1/error", body_of(report)).status, 403);
}

TEST_F(Plane, AHostThatCantOpenASessionIsTheVerdict) {
    change([](Daemon& d) {
        want_run(d.access["uuid-a"], "a1", "r1", "n1");
        d.access["uuid-a"].permits[0].rdma = RdmaMode::auto_;
        d.access["uuid-a"].permits[0].host_netdev = "no-such-dev0";
        d.access["uuid-a"].permits[0].host_address = *IpAddress::parse("127.0.0.1");
    });
    EXPECT_EQ(open("r1", "n1").status, 502) << "kernel_refused: SO_BINDTODEVICE";
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_THAT(verdicts()[0].detail, HasSubstr("the host could not open a session: "));
    EXPECT_THAT(verdicts()[0].detail, HasSubstr("no-such-dev0"));
}

TEST_F(Plane, AManualRunIsForWhoAskedForIt) {
    auto const started = ask("POST", "/guest/v1/attachments/a1/runs");
    ASSERT_EQ(started.status, 201) << started.body;
    auto const expected = from_json_text<GuestAttachment>(started.body).value();
    ASSERT_TRUE(expected.run);
    EXPECT_NE(expected.nonce, "");
    // The resident vf-guest does not get the run, so it does not do it too.
    EXPECT_FALSE(config().attachments[0].run);
    EXPECT_EQ(config().attachments[0].nonce, "");
    EXPECT_EQ(open(*expected.run, expected.nonce).status, 201);
    EXPECT_EQ(ask("POST", "/guest/v1/attachments/none/runs").status, 404);
}

// A VM that requests runs of attachments it does not have displaces no other VM's run.
TEST_F(Plane, AManualRunStaysHiddenWhateverAnotherVmAsksFor) {
    ASSERT_EQ(ask("POST", "/guest/v1/attachments/a1/runs").status, 201);
    for (int i = 0; i < 300; ++i)
        ASSERT_EQ(
            ask("POST", "/guest/v1/attachments/none/runs", {}, http::VsockPeer{cid_b, 1}).status,
            404);
    for (int i = 0; i < 100; ++i)
        ASSERT_EQ(
            ask("POST", "/guest/v1/attachments/b1/runs", {}, http::VsockPeer{cid_b, 1}).status,
            201);
    EXPECT_FALSE(config().attachments[0].run);
}

TEST_F(Plane, AnExceptionEndsOneRequestOnly) {
    change([](Daemon& d) { d.throwing = "uuid-a"; });
    auto const answer = ask("GET", "/guest/v1/config");
    EXPECT_EQ(answer.status, 500);
    EXPECT_THAT(answer.body, HasSubstr("an exception ended the request: no memory"));
    config(http::VsockPeer{cid_b, 1});
    change([](Daemon& d) { d.throwing.clear(); });
    config();
}

// --- streams ------------------------------------------------------------------------------------

std::string stream_request() {
    return body_of(StreamRequest{StreamKind::one_sided, 8, 1, {Plane::queue_pair()}, {}});
}

TEST_F(Plane, AStreamBelongsToASessionOfThisVm) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    EXPECT_EQ(ask("POST", "/guest/v1/sessions/none/streams", stream_request()).status, 404);
    auto const session = from_json_text<SessionOffer>(open("r1", "n1").body).value().session;
    auto const path = "/guest/v1/sessions/" + session + "/streams";
    http::Peer const b = http::VsockPeer{cid_b, 1};
    EXPECT_EQ(ask("POST", path, stream_request(), b).status, 404);
    EXPECT_EQ(ask("DELETE", path + "/x", {}, b).status, 404);
    EXPECT_EQ(ask("POST", path, "{}").status, 422);
    EXPECT_EQ(ask("GET", path).status, 405);
    EXPECT_EQ(ask("POST", path + "/x").status, 405);
    EXPECT_EQ(ask("DELETE", path + "/x/y").status, 404);
    EXPECT_EQ(ask("DELETE", path + "/x").status, 204) << "it has ended";
}

TEST_F(Plane, WithoutRdmaThereAreNoStreams) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    auto const session = from_json_text<SessionOffer>(open("r1", "n1").body).value().session;
    auto const refused =
        ask("POST", "/guest/v1/sessions/" + session + "/streams", stream_request());
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("the network has rdma: none"));
}

TEST_F(Plane, ARunHasTheProfileThatTheGuestWants) {
    auto const quick = ask("POST", "/guest/v1/attachments/a1/runs", R"({"profile": "quick"})");
    ASSERT_EQ(quick.status, 201) << quick.body;
    EXPECT_EQ(daemon.tickets.back().profile, Profile::quick);
    ASSERT_EQ(ask("POST", "/guest/v1/attachments/a1/runs").status, 201);
    EXPECT_EQ(daemon.tickets.back().profile, Profile::default_);
    EXPECT_EQ(ask("POST", "/guest/v1/attachments/a1/runs", R"({"profile": "all"})").status, 422);
}

}  // namespace
}  // namespace vfmgr::plane_test
