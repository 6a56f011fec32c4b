// SPDX-License-Identifier: Apache-2.0
// Runs that another host answers: the guest notices no difference.
#include "tests/unit/service/guest/plane_harness.hpp"
#include "tests/unit/vfmgr/proof/serve/served.hpp"

namespace vfmgr::plane_test {
namespace {

// Starts a run of a1 that `target` answers; the guest's configuration has its address.
void want_remote_run(Daemon& daemon, test::ServedResponder const& served,
                     ResponderTarget const& target) {
    auto& access = daemon.access["uuid-a"];
    want_run(access, "a1", "r1", "n1");
    access.attachments[0].echo_port = served.info.echo_port;
    access.permits[0].path = TestPath::wire;
    access.remotes["r1"] = target;
}

struct RemotePlane : Plane {
    test::ServedResponder served;

    void requested(ResponderTarget const& target) {
        change([&](Daemon& d) { want_remote_run(d, served, target); });
    }
    std::string open_session() {
        auto const opened = open("r1", "n1");
        EXPECT_EQ(opened.status, 201) << opened.body;
        return from_json_text<SessionOffer>(opened.body).value().session;
    }
};

TEST_F(RemotePlane, TheOtherHostsVerdictIsDelivered) {
    requested(served.target());
    auto session = verify::GuestSession::prepare({config().attachments[0], ""});
    ASSERT_TRUE(session);
    auto const opened = ask("POST", "/guest/v1/sessions", body_of((*session)->request()));
    ASSERT_EQ(opened.status, 201) << opened.body;
    EXPECT_EQ(served.responder->load().sessions, 1U);
    EXPECT_EQ(responder->load().sessions, 0U);
    auto const offer = from_json_text<SessionOffer>(opened.body).value();
    auto const closed = ask("PUT", "/guest/v1/sessions/" + offer.session + "/report",
                            body_of((*session)->run(offer)));
    ASSERT_EQ(closed.status, 200) << closed.body;
    ASSERT_EQ(verdicts().size(), 1U);
    auto const verdict = verdicts()[0];
    EXPECT_EQ(verdict.tests[0].verdict, Verdict::pass) << verdict.tests[0].detail;
    EXPECT_EQ(verdict.run, "r1");
    EXPECT_EQ(verdict.attachment, "a1");
    EXPECT_EQ(verdict.path, TestPath::wire);
    EXPECT_EQ(verdict.responder, to_string(served.target().place));
    EXPECT_EQ(served.responder->load().sessions, 0U);
}

TEST_F(RemotePlane, NothingThatAVmReadsHoldsTheToken) {
    requested(served.target());
    auto const shown = ask("GET", "/guest/v1/config").body + open("r1", "n1").body;
    EXPECT_EQ(shown.find(served.credentials.token), std::string::npos);
}

TEST_F(RemotePlane, StreamsGoThereToo) {
    requested(served.target());
    auto const path = "/guest/v1/sessions/" + open_session() + "/streams";
    auto const refused =
        ask("POST", path, body_of(StreamRequest{StreamKind::one_sided, 8, 1, {queue_pair()}, {}}));
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("the network has rdma: none"));
    EXPECT_EQ(ask("DELETE", path + "/x").status, 204);
}

TEST_F(RemotePlane, DetachEndsTheSessionThere) {
    requested(served.target());
    ASSERT_EQ(open("r1", "n1").status, 201);
    change([](Daemon& d) { d.access["uuid-a"] = {}; });
    auto const deadline = std::chrono::steady_clock::now() + seconds(20);
    while (served.responder->load().sessions != 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    EXPECT_EQ(served.responder->load().sessions, 0U);
}

TEST_F(RemotePlane, ANewRunHereEndsTheOldOneThere) {
    requested(served.target());
    ASSERT_EQ(open("r1", "n1").status, 201);
    {
        // The plane is not notified: the guest is faster.
        std::lock_guard const lock(daemon.mutex);
        daemon.access["uuid-a"] = {};
        daemon.access["uuid-a"].attachments = {attachment("a1")};
        want_run(daemon.access["uuid-a"], "a1", "r2", "n2");
    }
    ASSERT_EQ(open("r2", "n2").status, 201);
    EXPECT_EQ(served.responder->load().sessions, 0U);
    EXPECT_EQ(responder->load().sessions, 1U);
}

TEST_F(RemotePlane, AnotherVmHasNoPartInIt) {
    requested(served.target());
    GuestReport report;
    report.nonce = "n1";
    auto const path = "/guest/v1/sessions/" + open_session() + "/report";
    EXPECT_EQ(ask("PUT", path, body_of(report), http::VsockPeer{cid_b, 1}).status, 404);
    EXPECT_EQ(served.responder->load().sessions, 1U);
}

TEST_F(RemotePlane, AResponderThatIsGoneIsTheVerdict) {
    requested({{"127.0.0.1", test::free_port()}, served.credentials.fingerprint, "vfr_x"});
    EXPECT_EQ(open("r1", "n1").status, 503);
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_EQ(verdicts()[0].verdict, Verdict::fail);
    EXPECT_THAT(verdicts()[0].detail, HasSubstr("the responder 127.0.0.1:"));
    EXPECT_TRUE(verdicts()[0].responder);
}

TEST_F(RemotePlane, AResponderThatGoesBeforeItsVerdictEndsTheRun) {
    requested(served.target());
    GuestReport report;
    report.nonce = "n1";
    auto const path = "/guest/v1/sessions/" + open_session() + "/report";
    served.server.stop();
    EXPECT_EQ(ask("PUT", path, body_of(report)).status, 200);
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_EQ(verdicts()[0].verdict, Verdict::fail);
    EXPECT_THAT(verdicts()[0].detail, HasSubstr("no verdict arrived: the responder"));
}

}  // namespace
}  // namespace vfmgr::plane_test
