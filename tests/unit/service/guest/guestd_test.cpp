// SPDX-License-Identifier: Apache-2.0
// vfmgr-guestd and vfmgrd's end of it: what passes between them, and what outlives either.
#include "tests/unit/service/guest/guestd_harness.hpp"

namespace vfmgr::guestd_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Guestd, AVmReadsWhatVfmgrdPushed) {
    EXPECT_EQ(ask(3, "GET", "/guest/v1/config").status, 503) << "no vfmgrd so far";
    start_front_and_push();
    EXPECT_EQ(config(3).attachments.at(0).attachment, "a1");
    change([](Front& now) { now.vms.vms["uuid-a"].access.attachments.clear(); });
    EXPECT_TRUE(config(3).attachments.empty());
    EXPECT_TRUE(front.identified.empty()) << "what was pushed is current";
}

TEST_F(Guestd, AChangeIsPushedByItself) {
    start_front_and_push();
    auto answer = poll(config(3));
    EXPECT_TRUE(guest_waits());
    front.change([](Front& now) { now.vms.vms["uuid-a"].access.attachments.clear(); });
    link->changed();
    EXPECT_EQ(answer.get().status, 200);
}

TEST_F(Guestd, ACidIsAskedForOnceLibvirtHasAnnouncedAChange) {
    start_front_and_push();
    EXPECT_EQ(ask(9, "GET", "/guest/v1/config").status, 404);
    EXPECT_THAT(front.identified, ElementsAre(9u));
    change([](Front& now) { now.vms.current = false; });
    config(3);
    EXPECT_THAT(front.identified, ElementsAre(9u, 3u));
}

TEST_F(Guestd, TwoVmsOfOneCidAreAskedFor) {
    front.vms.vms["uuid-b"] = a_vm("b", 3);
    start_front_and_push();
    config(3);
    EXPECT_THAT(front.identified, ElementsAre(3u));
}

TEST_F(Guestd, ARunThatTheGuestStartsIsInItsAnswer) {
    start_front_and_push();
    auto const answer = ask(3, "POST", "/guest/v1/attachments/a1/runs", "{}");
    ASSERT_EQ(answer.status, 201) << answer.body;
    auto const begun = from_json_text<GuestAttachment>(answer.body).value();
    EXPECT_EQ(begun.run, front.vms.vms.at("uuid-a").access.permits.at(0).run);
}

TEST_F(Guestd, AChangeOfTheVmsOwnComesAfterWhatWasAnsweredBefore) {
    start_front_and_push();
    front.change(
        [](Front& now) { now.vms.vms["uuid-a"].access.attachments = {an_attachment("a2")}; });
    EXPECT_EQ(ask(3, "POST", "/guest/v1/attachments/a2/runs", "{}").status, 201)
        << "vfmgrd has it, but has not pushed it yet";
}

TEST_F(Guestd, AVerdictComesBackWithWhatVfmgrdKnows) {
    request_run(front.vms.vms["uuid-a"].access, "r1");
    start_front_and_push();
    auto const answer = report_error("r1", "n-r1");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("what vfmgrd knows"));
    EXPECT_EQ(front.verdicts.at(0).run, "r1");
}

TEST_F(Guestd, AVerdictWaitsForTheNextVfmgrd) {
    request_run(front.vms.vms["uuid-a"].access, "r1");
    front.takes_verdicts = false;
    start_front_and_push();
    EXPECT_EQ(report_error("r1", "n-r1").status, 200);
    link.reset();
    EXPECT_EQ(ask(3, "GET", "/guest/v1/config").status, 503) << "who has the CID is unknown";
    front.takes_verdicts = true;
    start_front();
    ASSERT_TRUE(front.await([this] { return !front.verdicts.empty(); }));
    EXPECT_EQ(front.verdicts.at(0).run, "r1");
}

TEST_F(Guestd, RunsBeginAgainUnderAnotherNameWhenItHasEnded) {
    request_run(front.vms.vms["uuid-a"].access, "r1");
    start_front_and_push();
    EXPECT_EQ(run_in_config(), "r1");
    start_guestd();
    ASSERT_TRUE(front.connected(2));
    push();
    EXPECT_EQ(run_in_config(), "r1-2");
    EXPECT_EQ(report_error("r1", "n-r1").status, 404);
    ASSERT_EQ(report_error("r1-2", "n-r1").status, 200);
    EXPECT_EQ(front.verdicts.at(0).run, "r1") << "vfmgrd has one run";
    change([](Front& now) { request_run(now.vms.vms["uuid-a"].access, "r2"); });
    EXPECT_EQ(run_in_config(), "r2");
}

TEST_F(Guestd, RunsGoOnWhenVfmgrdHasEnded) {
    request_run(front.vms.vms["uuid-a"].access, "r1");
    start_front_and_push();
    start_front_and_push(2);
    EXPECT_EQ(run_in_config(), "r1");
    EXPECT_EQ(report_error("r1", "n-r1").status, 200);
}

TEST_F(Guestd, AVmThatStopsLosesItsPollAndItsConnections) {
    start_front_and_push();
    auto answer = poll(config(3));
    EXPECT_TRUE(guest_waits());
    EXPECT_FALSE(link->guest_waits("uuid-b"));
    // The next life has the same UUID and CID.
    change([](Front& now) { now.vms.vms["uuid-a"] = a_vm("a", 3, 2); });
    EXPECT_NE(answer.get().status, 200);
    EXPECT_FALSE(link->guest_waits("uuid-a")) << "its next life may have no vf-guest";
}

TEST_F(Guestd, TheNextVfmgrdLearnsWhoWaits) {
    start_front_and_push();
    auto answer = poll(config(3));
    EXPECT_TRUE(guest_waits());
    start_front_and_push(2);
    EXPECT_TRUE(guest_waits());
    EXPECT_NE(answer.wait_for(0s), std::future_status::ready) << "its poll goes on";
    change([](Front& now) { now.vms.vms.clear(); });
    answer.wait();
}

TEST_F(Guestd, ReportsItsLoad) {
    start_front_and_push();
    auto const load = link->load();
    ASSERT_TRUE(load);
    EXPECT_EQ(load->responder.sessions_max, verify::ResponderLimits{}.sessions_max);
    link = std::make_unique<guestd::Link>(
        [] { return Result<FileDescriptor>(fail(Problem::unavailable, "none", "")); },
        guestd::FrontHooks{}, *clock);
    EXPECT_FALSE(link->load());
}

TEST_F(Guestd, SaysOfInteropClientsThatNoneAreServed) {
    start_front_and_push();
    for (auto const call : {guestd::Call::find_interop, guestd::Call::close_interop}) {
        std::promise<Result<guestd::Answer>> answered;
        link->ask({.call = call, .attachment = "a1"},
                  [&](Result<guestd::Answer> answer) { answered.set_value(std::move(answer)); });
        auto const answer = answered.get_future().get();
        ASSERT_TRUE(answer) << answer.error().detail;
        EXPECT_FALSE(answer->window);
    }
}

// Speaks for one that is not what it should be.
class Other {
  public:
    explicit Other(guestd::Greeting const& greeting) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        other_end = ends[1];
        dialogue_ = std::make_unique<guestd::Dialogue>(
            FileDescriptor(ends[0]),
            guestd::DialogueHooks{
                [](guestd::Request const&) { return Result<guestd::Answer>(guestd::Answer{}); },
                [](guestd::Message const&) { return true; }, [] {}});
        dialogue_->send(greeting);
    }
    Result<guestd::Answer> ask(guestd::Request request) {
        return dialogue_->ask(std::move(request), std::chrono::steady_clock::now() + 20s);
    }
    int other_end = -1;

  private:
    std::unique_ptr<guestd::Dialogue> dialogue_;
};

TEST_F(Guestd, OneOfAnotherVersionIsNotSpokenWith) {
    Other old({guestd::protocol + 1, "9.9", "i"});
    guestd::FrontHooks hooks;
    hooks.report = [this](Result<void> const& connected) {
        front.change(
            [&](Front& now) { now.reports.push_back(connected ? "" : connected.error().detail); });
    };
    link = std::make_unique<guestd::Link>(
        [&]() -> Result<FileDescriptor> {
            if (auto const fd = std::exchange(old.other_end, -1); fd >= 0)
                return FileDescriptor(fd);
            return fail(Problem::unavailable, "none", "");
        },
        hooks, *clock);
    link->start();
    ASSERT_TRUE(front.await([this] { return !front.reports.empty(); }));
    EXPECT_THAT(front.reports.at(0), HasSubstr("another version: 9.9"));
}

TEST_F(Guestd, NeitherEndAnswersItsOwnQuestions) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    service->serve(FileDescriptor(ends[0]));
    guestd::Dialogue as_front(
        FileDescriptor(ends[1]),
        guestd::DialogueHooks{
            [](guestd::Request const&) { return Result<guestd::Answer>(guestd::Answer{}); },
            [](guestd::Message const&) { return true; }, [] {}});
    auto const answer = as_front.ask({.call = guestd::Call::identify, .cid = 3},
                                     std::chrono::steady_clock::now() + 20s);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().problem, Problem::forbidden);
    Other guestd({guestd::protocol, "0", "i"});
    guestd::FrontHooks hooks;
    hooks.vms = [] { return GuestVms{}; };
    hooks.report = [](auto const&) {};
    link = std::make_unique<guestd::Link>(
        [&]() -> Result<FileDescriptor> {
            if (auto const fd = std::exchange(guestd.other_end, -1); fd >= 0)
                return FileDescriptor(fd);
            return fail(Problem::unavailable, "none", "");
        },
        hooks, *clock);
    link->start();
    auto const refused = guestd.ask({.call = guestd::Call::load});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::forbidden);
    link.reset();
}

TEST(GuestdMessages, AreTheSameWhenTheyAreReadAgain) {
    auto vm = a_vm("a", 3);
    vm.access.attachments = {an_attachment("a1")};
    request_run(vm.access, "r1");
    vm.access.interop = vm.access.permits;
    vm.access.remotes["r1"] = {{"10.99.0.2", 8473}, "6f1c", "vfr_1"};
    guestd::Push const push{true, true, {vm}, {"uuid-b"}};
    auto line = guestd::to_line(push);
    ASSERT_EQ(line.back(), '\n');
    line.pop_back();
    auto const read = guestd::parse_message(line);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(std::get<guestd::Push>(*read), push);
}

TEST(GuestdMessages, HaveWhatTheirCallNeedsAndNothingElse) {
    for (auto const* const wrong :
         {R"({"request":{"id":1,"call":"identify"}})", R"({"request":{"id":0,"call":"load"}})",
          R"({"request":{"id":1,"call":"load","cid":3}})", R"({})",
          R"({"waits":{"vm":{"uuid":"u","name":"n","start_id":1}},"answer":{"id":1}})", "["})
        EXPECT_FALSE(guestd::parse_message(wrong)) << wrong;
    EXPECT_TRUE(guestd::parse_message(R"({"request":{"id":1,"call":"identify","cid":3}})"));
}

}  // namespace
}  // namespace vfmgr::guestd_test
