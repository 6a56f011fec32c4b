// SPDX-License-Identifier: Apache-2.0
// Scheduled verifications, with a clock that stands still until a test moves it.
#include <gmock/gmock.h>

#include <atomic>
#include <set>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/file_size_limit.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using End = ScheduledRun::End;

struct ScheduleTest : testing::Test {
    TemporaryFolder folder;
    FakeClock clock;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    bool guest_waits = true;          // control thread
    std::vector<ScheduledRun> told_;  // control thread
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).free_pcie_ports = 8; });
        open();
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    }
    void open() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
        bench->engine.runs().start_schedule(
            {[this](std::string const&) { return guest_waits; },
             [this](ScheduledRun const& run) { told_.push_back(run); }});
    }
    std::string attach(std::uint16_t vf, std::uint32_t every_seconds) {
        auto spec = ask();
        spec.vf = vf;
        spec.verify_every_seconds = every_seconds;
        auto const attached = bench->run(Attach{spec});
        EXPECT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
        look();
        return attached.subject.substr(attached.subject.rfind('/') + 1);
    }
    // As the observer does; the fake clock has no deadline that could come by itself.
    void look() {
        auto observed = hypervisor.observe({}).value();
        bench->engine.control().publish(observed, {}, clock.now());
    }
    // Each round's task may leave one to the next: observe, begin, wait.
    void settle() {
        for (int i = 0; i < 4; ++i)
            bench->engine.control().wait([](Control::State&) { return true; });
    }
    void pass(std::chrono::seconds time) {
        clock.advance(time);
        settle();
    }
    std::map<std::string, PendingRun> runs() {
        return bench->engine.control().wait([](Control::State& state) { return state.runs(); });
    }
    std::vector<ScheduledRun> told() {
        return bench->engine.control().wait(
            [this](Control::State&) { return std::exchange(told_, {}); });
    }
    void report(std::string const& attachment, Verdict verdict, double mbps = 100) {
        Verification done;
        done.attachment = attachment;
        done.run = runs().at(attachment).run;
        done.verdict = verdict;
        done.tests = {{"rdma_write",
                       verdict,
                       Judge::host,
                       1 << 20,
                       0,
                       {{"bandwidth_mbps", mbps}},
                       "bytes differ",
                       "see there"}};
        bench->engine.runs().verification_done(done);
        settle();
    }
};

TEST_F(ScheduleTest, ARunIsBegunEachTimeThePeriodIsOver) {
    auto const id = attach(0, 60);
    pass(59s);
    EXPECT_THAT(runs(), IsEmpty());
    pass(1s);
    ASSERT_EQ(runs().count(id), 1U);
    auto const first = runs().at(id);
    EXPECT_EQ(first.started_at, clock.now());
    EXPECT_EQ(bench->engine.snapshot().runs->at(id).run, first.run) << "the guest is asked";
    pass(8s);
    report(id, Verdict::pass);
    EXPECT_EQ(bench->desired().attachments.at(id).verification->verdict, Verdict::pass);
    auto const ended = told();
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].end, End::passed);
    EXPECT_EQ(ended[0].vm, "vm1");
    pass(51s);
    EXPECT_THAT(runs(), IsEmpty()) << "counted from the last one's start";
    pass(1s);
    EXPECT_NE(runs().at(id).run, first.run);
}

TEST_F(ScheduleTest, WithoutAScheduleNothingIsBegun) {
    attach(0, 0);
    pass(100h);
    EXPECT_THAT(runs(), IsEmpty());
}

TEST_F(ScheduleTest, AFailureAndAWarningAreToldAndKeptAndDetachNothing) {
    auto const id = attach(0, 60);
    for (int i = 0; i < 5; ++i) {
        pass(60s);
        report(id, Verdict::pass);
    }
    told();
    pass(60s);
    report(id, Verdict::pass, 10);
    auto news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].end, End::warned);
    EXPECT_THAT(news[0].detail,
                HasSubstr("10.0 Mbit/s is 0.10 times the median of this VF's last 5 runs"));
    EXPECT_THAT(news[0].remedy, HasSubstr("other load"));
    pass(60s);
    report(id, Verdict::fail);
    news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].end, End::failed);
    EXPECT_THAT(news[0].detail, HasSubstr("rdma_write fail: bytes differ"));
    EXPECT_FALSE(news[0].remedy.empty());
    EXPECT_EQ(bench->desired().attachments.at(id).state, AttachmentState::attached);
    auto const history = bench->engine.control().wait(
        [](Control::State& state) { return state.store.verifications(VfId{pf0, 0}, {}); });
    ASSERT_EQ(history->items.size(), 7U);
    EXPECT_EQ(history->items.at(0).verdict, Verdict::fail);
    EXPECT_EQ(history->items.at(1).warnings.size(), 1U);
}

TEST_F(ScheduleTest, ASilentGuestFailsTheRunAndIsAskedAgain) {
    auto const id = attach(0, 300);
    pass(300s);
    auto const first = runs().at(id).run;
    pass(119s);
    EXPECT_THAT(told(), IsEmpty());
    pass(1s);
    EXPECT_THAT(runs(), IsEmpty());
    auto const news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].end, End::failed);
    EXPECT_THAT(news[0].detail, HasSubstr("VM vm1 did not report within 120 s"));
    EXPECT_FALSE(bench->desired().attachments.at(id).verification);
    pass(179s);
    EXPECT_THAT(runs(), IsEmpty());
    pass(1s);
    EXPECT_NE(runs().at(id).run, first);
}

TEST_F(ScheduleTest, AttachmentsAreVerifiedOneAfterTheOther) {
    std::set<std::string> left;
    for (std::uint16_t vf = 0; vf < 7; ++vf) left.insert(attach(vf, 60));
    pass(60s);
    while (!left.empty()) {
        auto const now = runs();
        ASSERT_EQ(now.size(), 1U) << "two would measure each other";
        auto const id = now.begin()->first;
        EXPECT_EQ(left.erase(id), 1U);
        report(id, Verdict::pass);
        EXPECT_THAT(runs(), IsEmpty()) << "not within the same second";
        pass(1s);
    }
}

TEST_F(ScheduleTest, WhatCannotBeVerifiedIsSkippedAndToldOnce) {
    auto const id = attach(0, 60);
    guest_waits = false;
    pass(60s);
    auto news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].end, End::skipped);
    EXPECT_EQ(news[0].detail, "vf-guest in VM vm1 is not waiting for runs");
    pass(600s);
    EXPECT_THAT(told(), IsEmpty());
    hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).state = VmState::shut_off; });
    look();
    pass(60s);
    news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].detail, "VM vm1 is shut_off, not running");
    EXPECT_THAT(runs(), IsEmpty());
    hypervisor.change([](HypervisorView& view) { view.vms.at(vm1).state = VmState::running; });
    look();
    guest_waits = true;
    pass(60s);
    EXPECT_EQ(runs().count(id), 1U) << "overdue, so it is begun as soon as it can be";
}

TEST_F(ScheduleTest, ARunThatSomebodyAskedForCountsAndIsNotDisturbed) {
    auto const id = attach(0, 60);
    pass(50s);
    std::promise<void> begun;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (!state.runs().empty()) begun.set_value();
        return !state.runs().empty();
    });
    auto const asked = bench->submit(Verify{id, 120})->operation->id;
    begun.get_future().get();
    auto const run = runs().at(id).run;
    pass(10s);
    EXPECT_EQ(runs().at(id).run, run);
    report(id, Verdict::pass);
    EXPECT_EQ(bench->ended(asked).state, OperationState::succeeded);
    pass(49s);
    EXPECT_THAT(runs(), IsEmpty());
    pass(60s);
    EXPECT_EQ(runs().count(id), 1U);
    EXPECT_THAT(told(), IsEmpty());
}

TEST_F(ScheduleTest, ARunThatAGuestBeganAndNeverEndsHoldsNothingUp) {
    auto const id = attach(0, 60);
    auto const begin = [&](Control::State& state) {
        state.set_run(id, PendingRun{"theirs", "nonce", clock.now(), clock.now() + 10min, {}, {}});
        return true;
    };
    bench->engine.control().wait(begin);
    pass(9min);
    EXPECT_EQ(runs().at(id).run, "theirs");
    pass(1min);
    EXPECT_NE(runs().at(id).run, "theirs");
    bench->engine.control().wait(begin);
    settle();
    auto const news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].end, End::skipped);
    EXPECT_EQ(news[0].detail, "another run of this attachment has begun");
}

TEST_F(ScheduleTest, AVerdictThatCouldNotBeStoredIsNoSilence) {
    auto const id = attach(0, 60);
    pass(60s);
    std::optional<test::FileSizeLimit> full(0);
    report(id, Verdict::pass);
    auto const news = told();
    ASSERT_EQ(news.size(), 1U);
    EXPECT_EQ(news[0].end, End::failed);
    EXPECT_THAT(news[0].remedy, HasSubstr("free space"));
    pass(60s);
    EXPECT_THAT(runs(), IsEmpty()) << "another verdict could not be kept beside it";
    full.reset();
    pass(1s);
    ASSERT_TRUE(bench->desired().attachments.at(id).verification) << "the guest was told of it";
    EXPECT_EQ(bench->desired().attachments.at(id).verification->verdict, Verdict::pass);
    EXPECT_THAT(told(), IsEmpty());
}

TEST_F(ScheduleTest, TheStoreKnowsTheLastRunAfterARestart) {
    auto const id = attach(0, 3600);
    pass(3600s);
    report(id, Verdict::pass);
    open();
    look();
    pass(3599s);
    EXPECT_THAT(runs(), IsEmpty());
    pass(1s);
    EXPECT_EQ(runs().count(id), 1U);
    bench->engine.control().wait([](Control::State& state) {
        for (auto const& [attachment, run] : std::map(state.runs())) state.erase_run(attachment);
        return true;
    });
    open();
    look();
    pass(0s);
    EXPECT_EQ(runs().count(id), 1U) << "what a restart cut short is begun anew";
}

TEST_F(ScheduleTest, WhatIsDetachedIsNotVerified) {
    auto const id = attach(0, 60);
    pass(60s);
    ASSERT_EQ(runs().count(id), 1U);
    EXPECT_EQ(bench->run(Detach{id}).state, OperationState::succeeded);
    settle();
    EXPECT_THAT(runs(), IsEmpty());
    EXPECT_THAT(told(), IsEmpty());
    auto const next = attach(1, 60);
    pass(60s);
    EXPECT_EQ(runs().count(next), 1U);
    EXPECT_EQ(runs().size(), 1U);
}

TEST_F(ScheduleTest, AStoppedScheduleBeginsNothing) {
    attach(0, 60);
    bench->engine.runs().stop_schedule();
    pass(60s);
    EXPECT_THAT(runs(), IsEmpty());
}

// With the host's own clock, whose deadlines fire by themselves.
struct RealSchedule : ScheduleTest {
    void SetUp() override {
        ScheduleTest::SetUp();
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->engine.runs().start_schedule(
            {[](std::string const&) { return true; }, [](ScheduledRun const&) {}});
    }
};

TEST_F(RealSchedule, TheControlThreadWakesForIt) {
    std::promise<std::string> begun;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (!state.runs().empty()) begun.set_value(state.runs().begin()->first);
        return !state.runs().empty();
    });
    auto const id = attach(0, 1);
    auto first = begun.get_future();
    ASSERT_EQ(first.wait_for(20s), std::future_status::ready);
    EXPECT_EQ(first.get(), id);
}

TEST_F(RealSchedule, NobodyAsksAgainWhileNothingIsDue) {
    attach(0, 3600);
    settle();
    std::atomic<int> rounds = 0;
    bench->engine.control().on_change([&] { ++rounds; });
    for (int i = 0; i < 10; ++i) settle();
    bench->engine.control().on_change([] {});
    EXPECT_LE(rounds, 42) << "one for each task of this test";
}

}  // namespace
}  // namespace vfmgr
