// SPDX-License-Identifier: Apache-2.0
// The guest plane with hostile and honest VMs; hooks are faked, the responder is real (without
// RDMA, on loopback).
#include "service/guest/plane.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "guest-tools/verify/session.hpp"

namespace vfmgr {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t cid_a = 3;
constexpr std::uint32_t cid_b = 4;

struct Daemon {
    std::mutex mutex;
    std::map<std::uint32_t, VmIdentity> vms{{cid_a, {"uuid-a", "a", 1}},
                                            {cid_b, {"uuid-b", "b", 2}}};
    std::map<std::string, GuestAccess> access;  // by UUID
    std::vector<Verification> verdicts;
};

std::uint16_t echo_port() {
    return static_cast<std::uint16_t>(20000 + ::getpid() % 20000);
}

GuestAttachment attachment(std::string id) {
    GuestAttachment made;
    made.attachment = std::move(id);
    made.mac = *MacAddress::parse("52:54:00:11:22:33");
    made.address = *IpAddress::parse("127.0.0.1");
    made.responder = *IpAddress::parse("127.0.0.1");
    made.rdma = RdmaMode::none;
    made.echo_port = echo_port();
    return made;
}

void want_run(GuestAccess& access, std::string const& id, std::string run, std::string nonce) {
    auto& wanted = *std::ranges::find(access.attachments, id, &GuestAttachment::attachment);
    wanted.run = run;
    wanted.nonce = nonce;
    verify::SessionPermit permit;
    permit.attachment = id;
    permit.run = std::move(run);
    permit.nonce = std::move(nonce);
    permit.vf_mac = wanted.mac;
    permit.peer_address = wanted.address;
    permit.host_address = wanted.responder;
    permit.rdma = RdmaMode::none;
    access.permits.push_back(permit);
}

template <class T>
std::string body_of(T const& value) {
    nlohmann::json out;
    to_json(out, value);
    return out.dump();
}

struct Plane : testing::Test {
    Daemon daemon;
    std::unique_ptr<verify::Responder> responder;
    GuestPlaneLimits limits;
    std::unique_ptr<GuestPlane> plane;

    void SetUp() override {
        verify::ResponderLimits responder_limits;
        responder_limits.echo_port = echo_port();
        auto started =
            verify::Responder::start(responder_limits, [](auto const&) { return Result<void>(); });
        ASSERT_TRUE(started);
        responder = std::move(*started);
        daemon.access["uuid-a"].attachments = {attachment("a1")};
        daemon.access["uuid-b"].attachments = {attachment("b1")};
        limits.requests = {.burst = 1000, .per_second = 1000};
        limits.sessions = {.burst = 1000, .per_second = 1000};
        start();
    }
    void TearDown() override { plane.reset(); }

    void start() {
        plane.reset();
        GuestPlaneHooks hooks;
        hooks.identify = [this](std::uint32_t cid) -> Result<VmIdentity> {
            std::lock_guard const lock(daemon.mutex);
            auto const found = daemon.vms.find(cid);
            if (found != daemon.vms.end()) return found->second;
            return fail(Problem::not_found, "no running VM has this CID", "");
        };
        hooks.access = [this](VmIdentity const& vm) -> Result<GuestAccess> {
            std::lock_guard const lock(daemon.mutex);
            return daemon.access[vm.uuid];
        };
        hooks.start_run = [this](VmIdentity const& vm, RunTicket const& ticket) -> Result<void> {
            std::lock_guard const lock(daemon.mutex);
            want_run(daemon.access[vm.uuid], ticket.attachment, ticket.run, ticket.nonce);
            return {};
        };
        hooks.on_verification = [this](Verification const& verification) {
            std::lock_guard const lock(daemon.mutex);
            daemon.verdicts.push_back(verification);
        };
        plane = std::make_unique<GuestPlane>(hooks, *responder, system_clock(), limits);
    }

    std::future<http::Response> send(http::Request request) {
        auto promise = std::make_shared<std::promise<http::Response>>();
        auto answer = promise->get_future();
        plane->handler()(std::move(request), [promise](http::Response response) {
            promise->set_value(std::move(response));
        });
        return answer;
    }
    http::Response ask(std::string method, std::string path, std::string body = {},
                       http::Peer peer = http::VsockPeer{cid_a, 700},
                       std::map<std::string, std::string> query = {}) {
        auto answer =
            send({std::move(method), std::move(path), std::move(query), {}, std::move(body), peer});
        if (answer.wait_for(seconds(20)) != std::future_status::ready) {
            ADD_FAILURE() << "no answer";
            return {};
        }
        return answer.get();
    }
    void change(std::function<void(Daemon&)> const& how) {
        {
            std::lock_guard const lock(daemon.mutex);
            how(daemon);
        }
        plane->changed();
    }
    GuestConfig config(http::Peer peer = http::VsockPeer{cid_a, 700}) {
        auto const response = ask("GET", "/guest/v1/config", {}, peer);
        EXPECT_EQ(response.status, 200) << response.body;
        return from_json_text<GuestConfig>(response.body).value();
    }
    std::vector<Verification> verdicts() {
        std::lock_guard const lock(daemon.mutex);
        return daemon.verdicts;
    }
    http::Response open(std::string run, std::string nonce) {
        return ask("POST", "/guest/v1/sessions",
                   body_of(SessionRequest{"a1", std::move(run), std::move(nonce), queue_pair()}));
    }
    static QueuePairEnd queue_pair() {
        return {verify::gid_hex(IpAddress::parse("127.0.0.1")->gid()), 17, 42, 1024, 1};
    }
};

// --- who may ask ------------------------------------------------------------------------------

TEST_F(Plane, AnUnprivilegedProcessInTheVmIsRefused) {
    auto const response = ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_a, 1024});
    EXPECT_EQ(response.status, 403);
    EXPECT_THAT(response.body, HasSubstr("below 1024"));
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_a, 1023}).status, 200);
}

TEST_F(Plane, OnlyVsockComesHere) {
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::UnixPeer{}).status, 403);
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::TcpPeer{"127.0.0.1"}).status, 403);
}

TEST_F(Plane, AnUnknownCidGetsNothing) {
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{99, 700}).status, 404);
}

TEST_F(Plane, AVmSeesItsOwnAttachmentsOnly) {
    auto const a = config();
    ASSERT_EQ(a.attachments.size(), 1U);
    EXPECT_EQ(a.attachments[0].attachment, "a1");
    EXPECT_EQ(config(http::VsockPeer{cid_b, 1}).attachments[0].attachment, "b1");
    EXPECT_NE(a.revision, config(http::VsockPeer{cid_b, 1}).revision);
}

TEST_F(Plane, PathsAndMethodsAreExact) {
    EXPECT_EQ(ask("GET", "/guest/v1/configs").status, 404);
    EXPECT_EQ(ask("GET", "/v1/pfs").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/config").status, 405);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions//report").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/a/b/report").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/" + std::string(65, 'a') + "/report").status, 404);
}

TEST_F(Plane, AVmThatAsksTooOftenWaits) {
    limits.requests = {.burst = 2, .per_second = 0.001};
    start();
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 200);
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 200);
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 503);
    // Others are not concerned.
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_b, 1}).status, 200);
}

TEST_F(Plane, SessionsAreRarer) {
    limits.sessions = {.burst = 1, .per_second = 0.001};
    start();
    EXPECT_EQ(open("r1", "n1").status, 404);
    EXPECT_EQ(open("r1", "n1").status, 503);
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 200);
}

// --- long poll --------------------------------------------------------------------------------

TEST_F(Plane, ALongPollIsAnsweredByTheChange) {
    auto const before = config();
    auto answer = send({"GET",
                        "/guest/v1/config",
                        {{"wait", "30"}, {"revision", std::to_string(before.revision)}},
                        {},
                        {},
                        http::VsockPeer{cid_a, 700}});
    // Somebody else's change does not concern it.
    change([](Daemon& d) { d.access["uuid-b"].attachments.clear(); });
    EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
    change([](Daemon& d) { d.access["uuid-a"].attachments.clear(); });
    ASSERT_EQ(answer.wait_for(seconds(20)), std::future_status::ready);
    auto const after = from_json_text<GuestConfig>(answer.get().body).value();
    EXPECT_TRUE(after.attachments.empty());
    EXPECT_NE(after.revision, before.revision);
}

TEST_F(Plane, ALongPollEndsByTime) {
    auto const before = config();
    auto const start_time = std::chrono::steady_clock::now();
    auto const response = ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_a, 700},
                              {{"wait", "1"}, {"revision", std::to_string(before.revision)}});
    EXPECT_EQ(response.status, 200);
    EXPECT_GE(std::chrono::steady_clock::now() - start_time, std::chrono::milliseconds(900));
    EXPECT_EQ(from_json_text<GuestConfig>(response.body)->revision, before.revision);
}

TEST_F(Plane, AnOlderRevisionIsAnsweredAtOnce) {
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_a, 700},
                  {{"wait", "30"}, {"revision", "7"}})
                  .status,
              200);
}

TEST_F(Plane, StrangeWaitsAreRefused) {
    for (auto const* wait : {"-1", "1.5", "", "x", "99999999999"})
        EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_a, 700}, {{"wait", wait}})
                      .status,
                  400)
            << wait;
}

TEST_F(Plane, TooManyLongPollsPushOutTheOldest) {
    limits.waiting_per_vm_max = 2;
    start();
    auto const revision = std::to_string(config().revision);
    std::vector<std::future<http::Response>> answers;
    for (int i = 0; i < 3; ++i)
        answers.push_back(send({"GET",
                                "/guest/v1/config",
                                {{"wait", "30"}, {"revision", revision}},
                                {},
                                {},
                                http::VsockPeer{cid_a, 700}}));
    auto const answered = [&] {
        return std::ranges::count_if(answers, [](auto& answer) {
            return answer.wait_for(seconds(0)) == std::future_status::ready;
        });
    };
    auto const deadline = std::chrono::steady_clock::now() + seconds(20);
    while (answered() < 1 && std::chrono::steady_clock::now() < deadline)
        answers.back().wait_for(std::chrono::milliseconds(10));
    EXPECT_EQ(answered(), 1);
}

// --- runs and sessions ------------------------------------------------------------------------

TEST_F(Plane, ARunIsProvedAndItsVerdictDelivered) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    auto const wanted = config().attachments[0];
    EXPECT_EQ(wanted.run, "r1");
    EXPECT_EQ(wanted.nonce, "n1");
    auto session = verify::GuestSession::prepare({wanted, ""});
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
    EXPECT_EQ(responder->sessions(), 1U);
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

TEST_F(Plane, AWrongNonceOpensNothing) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    EXPECT_EQ(open("r1", "n2").status, 403);
    EXPECT_EQ(responder->sessions(), 0U);
    EXPECT_TRUE(verdicts().empty());
}

TEST_F(Plane, BadBodiesAreNamed) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    EXPECT_EQ(ask("POST", "/guest/v1/sessions", "{").status, 400);
    EXPECT_EQ(ask("POST", "/guest/v1/sessions", "[]").status, 400);
    EXPECT_EQ(ask("PUT", "/guest/v1/runs/r1/error", R"({"nonce": 1})").status, 400);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/none/report", "null").status, 400);
}

TEST_F(Plane, DetachEndsTheSession) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    ASSERT_EQ(open("r1", "n1").status, 201);
    EXPECT_EQ(responder->sessions(), 1U);
    change([](Daemon& d) { d.access["uuid-a"] = {}; });
    auto const deadline = std::chrono::steady_clock::now() + seconds(20);
    while (responder->sessions() != 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    EXPECT_EQ(responder->sessions(), 0U);
}

TEST_F(Plane, AGuestThatCantTestSaysWhy) {
    change([](Daemon& d) { want_run(d.access["uuid-a"], "a1", "r1", "n1"); });
    GuestReport report;
    report.nonce = "n1";
    report.error = "no netdev with MAC 52:54:00:11:22:33 is in the VM";
    ASSERT_EQ(ask("PUT", "/guest/v1/runs/r1/error", body_of(report)).status, 200);
    ASSERT_EQ(verdicts().size(), 1U);
    EXPECT_EQ(verdicts()[0].verdict, Verdict::fail);
    EXPECT_EQ(verdicts()[0].detail,
              "the guest could not test: no netdev with MAC 52:54:00:11:22:33 is in the VM");
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
    auto const wanted = from_json_text<GuestAttachment>(started.body).value();
    ASSERT_TRUE(wanted.run);
    EXPECT_NE(wanted.nonce, "");
    // The resident vf-guest does not see it, so it does not do it too.
    EXPECT_FALSE(config().attachments[0].run);
    EXPECT_EQ(config().attachments[0].nonce, "");
    EXPECT_EQ(open(*wanted.run, wanted.nonce).status, 201);
    EXPECT_EQ(ask("POST", "/guest/v1/attachments/none/runs").status, 404);
}

}  // namespace
}  // namespace vfmgr
