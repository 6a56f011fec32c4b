// SPDX-License-Identifier: Apache-2.0
// Access to the guest plane: which peers, how often, and how long a query waits for a change.
#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/service/guest/plane_harness.hpp"

namespace vfmgr::plane_test {
namespace {

// --- access -----------------------------------------------------------------------------------

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

TEST_F(Plane, TellsWhereItsFunctionsAreOnlyWhoHasAVf) {
    auto const told = ask("GET", "/guest/v1/topology");
    ASSERT_EQ(told.status, 200);
    auto const topology = from_json_text<HostTopology>(told.body).value();
    ASSERT_EQ(topology.functions.size(), 1U);
    EXPECT_THAT(topology.functions[0].in_guest, HasSubstr("00/02.1/00.0 of "));
    change([](Daemon& d) { d.access["uuid-a"].attachments.clear(); });
    EXPECT_EQ(ask("GET", "/guest/v1/topology").status, 404);
    EXPECT_EQ(ask("GET", "/guest/v1/topology", {}, http::VsockPeer{cid_a, 1024}).status, 403);
}

TEST_F(Plane, PathsAndMethodsAreExact) {
    EXPECT_EQ(ask("GET", "/guest/v1/configs").status, 404);
    EXPECT_EQ(ask("GET", "/v1/pfs").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/config").status, 405);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions//report").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/a/b/report").status, 404);
    EXPECT_EQ(ask("PUT", "/guest/v1/sessions/" + std::string(65, 'a') + "/report").status, 404);
}

TEST_F(Plane, AParameterThatNobodyReadsIsRefused) {
    http::Peer const a = http::VsockPeer{cid_a, 700};
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, a, {{"wait", "0"}, {"revision", "0"}}).status,
              200);
    auto const typo = ask("GET", "/guest/v1/config", {}, a, {{"wiat", "30"}});
    EXPECT_EQ(typo.status, 400);
    EXPECT_THAT(typo.body, HasSubstr("has no parameter 'wiat'"));
    EXPECT_THAT(typo.body, HasSubstr("its parameters are: revision, wait"));
    EXPECT_EQ(ask("GET", "/guest/v1/topology", {}, a, {{"wait", "1"}}).status, 400);
    EXPECT_EQ(ask("POST", "/guest/v1/attachments/a1/runs", {}, a, {{"dry_run", "true"}}).status,
              400);
    EXPECT_TRUE(daemon.tickets.empty());
}

TEST_F(Plane, AVmThatAsksTooOftenWaits) {
    limits.requests = {.burst = 2, .per_second = 0.001};
    start();
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 200);
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 200);
    EXPECT_EQ(ask("GET", "/guest/v1/config").status, 503);
    // Other VMs are not affected.
    EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid_b, 1}).status, 200);
}

// One VM floods: it waits for itself, and all others are answered meanwhile.
TEST_F(Plane, AVmThatFloodsHoldsNobodyUp) {
    for (std::uint32_t cid = 5; cid < 36; ++cid)
        daemon.vms[cid] = {"uuid-" + std::to_string(cid), "vm", 1};
    change([](Daemon& d) { d.slow = "uuid-a"; });
    std::vector<std::future<http::Response>> flood;
    for (int i = 0; i < 100; ++i)
        flood.push_back(send({"GET", "/guest/v1/config", {}, {}, {}, http::VsockPeer{cid_a, 700}}));
    for (std::uint32_t cid = 4; cid < 36; ++cid)
        EXPECT_EQ(ask("GET", "/guest/v1/config", {}, http::VsockPeer{cid, 700}).status, 200) << cid;
    change([](Daemon& d) { d.slow.clear(); });
    std::size_t answered = 0;
    for (auto& one : flood) {
        ASSERT_EQ(one.wait_for(seconds(20)), std::future_status::ready);
        auto const response = one.get();
        if (response.status == 200) {
            ++answered;
            continue;
        }
        EXPECT_EQ(response.status, 503);
        EXPECT_TRUE(response.headers.contains("Retry-After"));
    }
    EXPECT_GE(answered, limits.jobs.waiting_each_max);
    EXPECT_LE(answered, limits.jobs.waiting_each_max + limits.jobs.at_work_each_max);
}

// The VM that sent it has stopped, and another has its CID.
TEST_F(Plane, WhatAStoppedVmAskedIsNotDone) {
    // One attachment for each request: of two runs of one attachment, the second replaces the
    // first.
    std::vector<GuestAttachment> attachments;
    for (std::size_t i = 0; i <= limits.jobs.at_work_each_max; ++i)
        attachments.push_back(attachment("a" + std::to_string(i)));
    change([&](Daemon& d) {
        d.access["uuid-a"].attachments = attachments;
        d.slow = "uuid-a";
    });
    std::vector<std::future<http::Response>> asked;
    for (auto const& one : attachments)
        asked.push_back(send({"POST",
                              "/guest/v1/attachments/" + one.attachment + "/runs",
                              {},
                              {},
                              {},
                              http::VsockPeer{cid_a, 700}}));
    auto const at_work = [&] {
        std::lock_guard const lock(daemon.mutex);
        return daemon.confirmed;
    };
    auto const deadline = std::chrono::steady_clock::now() + seconds(20);
    while (at_work() < limits.jobs.at_work_each_max && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    plane->cut(cid_a);
    change([](Daemon& d) { d.slow.clear(); });
    EXPECT_THROW(asked.back().get(), std::future_error) << "it was answered";
    asked.pop_back();
    for (auto& one : asked) EXPECT_EQ(one.get().status, 201);
    EXPECT_EQ(daemon.tickets.size(), limits.jobs.at_work_each_max);
}

TEST_F(Plane, AGuestThatWaitsIsReportedAndAgainOnRequest) {
    ask("GET", "/guest/v1/config");
    EXPECT_TRUE(waits().empty()) << "it asked once, and went";
    auto const revision = std::to_string(config().revision);
    auto const poll = send({"GET",
                            "/guest/v1/config",
                            {{"wait", "30"}, {"revision", revision}},
                            {},
                            {},
                            http::VsockPeer{cid_a, 700}});
    EXPECT_EQ(poll.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    EXPECT_THAT(waits(), testing::ElementsAre("a"));
    plane->repeat_waits();
    EXPECT_THAT(waits(), testing::ElementsAre("a", "a"));
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
    // Another VM's change does not affect it.
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

// Polls come in while others are examined: the limit counts those, too. The plane's threads take
// polls that are sent at once in any order; each of the last three is sent when all before wait.
TEST_F(Plane, TooManyLongPollsPushOutTheOldest) {
    limits.waiting_per_vm_max = 2;
    start();
    auto const revision = std::to_string(config().revision);
    std::vector<std::future<http::Response>> answers;
    auto const poll = [&] {
        answers.push_back(send({"GET",
                                "/guest/v1/config",
                                {{"wait", "30"}, {"revision", revision}},
                                {},
                                {},
                                http::VsockPeer{cid_a, 700}}));
    };
    auto const answered = [&] {
        return std::ranges::count_if(answers, [](auto& answer) {
            return answer.wait_for(seconds(0)) == std::future_status::ready;
        });
    };
    auto const all_but_two_are_answered = [&] {
        auto const expected = std::ssize(answers) - 2;
        auto const deadline = std::chrono::steady_clock::now() + seconds(20);
        while (answered() < expected && std::chrono::steady_clock::now() < deadline)
            for (auto& answer : answers) answer.wait_for(std::chrono::milliseconds(1));
        EXPECT_EQ(answered(), expected);
    };
    for (int i = 0; i < 10; ++i) poll();
    all_but_two_are_answered();
    for (int i = 0; i < 3; ++i) {
        poll();
        all_but_two_are_answered();
        EXPECT_EQ(answers.back().wait_for(seconds(0)), std::future_status::timeout);
    }
    EXPECT_EQ(answers[11].wait_for(std::chrono::milliseconds(100)), std::future_status::timeout)
        << "one that is younger was answered first";
}

}  // namespace
}  // namespace vfmgr::plane_test
