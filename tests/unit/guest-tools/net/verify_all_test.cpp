// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/run_tests.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <stdexcept>
#include <thread>

#include "guest-tools/net/host_client.hpp"

namespace vfmgr::guest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ready = std::function<void()>;

constexpr std::chrono::seconds meeting_time{20};

Result<VfReport> passed_report(std::string attachment) {
    VfReport report;
    report.verification.attachment = std::move(attachment);
    report.verification.verdict = Verdict::pass;
    return report;
}

// Collects the calls of on_end: calls come one at a time, so it needs no lock.
class ToldEnds {
  public:
    OnEnd on_end() {
        return [this](std::string const& attachment, Result<VfReport> report) {
            EXPECT_FALSE(inside_.exchange(true)) << "told of two at a time";
            order_.push_back(attachment);
            reports_.emplace(attachment, std::move(report));
            inside_ = false;
        };
    }
    std::vector<std::string> const& order() const { return order_; }
    Result<VfReport> const& of(std::string const& attachment) const {
        return reports_.at(attachment);
    }

  private:
    std::atomic<bool> inside_ = false;
    std::vector<std::string> order_;
    std::map<std::string, Result<VfReport>> reports_;
};

// An event that one verification waits for and another triggers.
class Happening {
  public:
    void happens() { promise_.set_value(); }
    bool awaited(std::chrono::milliseconds time) const {
        return happened_.wait_for(time) == std::future_status::ready;
    }

  private:
    std::promise<void> promise_;
    std::shared_future<void> happened_ = promise_.get_future().share();
};

// Ends only when all the others run, too.
OneVerification meets(std::string name, Happening& mine, std::vector<Happening*> others) {
    return {name, [name, &mine, others](Ready const& ready) -> Result<VfReport> {
                ready();
                mine.happens();
                for (auto const* other : others)
                    if (!other->awaited(meeting_time))
                        return fail(Problem::timed_out, "the others' tests don't run");
                return passed_report(name);
            }};
}

TEST(VerifyAll, AtOnceAllTestsRunTogetherAndTheReportsSayWithWhom) {
    Happening a, b, c;
    ToldEnds told;
    verify_all({meets("c", c, {&a, &b}), meets("a", a, {&b, &c}), meets("b", b, {&a, &c})},
               Order::at_once, told.on_end());
    for (auto const* name : {"a", "b", "c"}) ASSERT_TRUE(told.of(name)) << name;
    EXPECT_THAT(told.of("a")->at_once_with, ElementsAre("b", "c"));
    EXPECT_THAT(told.of("b")->at_once_with, ElementsAre("a", "c"));
    EXPECT_THAT(told.of("c")->at_once_with, ElementsAre("a", "b"));
}

TEST(VerifyAll, NoTestsBeginBeforeAllAreReady) {
    Happening quick_begins;
    ToldEnds told;
    OneVerification const quick{"quick", [&](Ready const& ready) {
                                    ready();
                                    quick_begins.happens();
                                    return passed_report("quick");
                                }};
    // Leaves a moment in which the other one could begin if it did not wait.
    OneVerification const slow{
        "slow", [&](Ready const& ready) {
            EXPECT_FALSE(quick_begins.awaited(std::chrono::milliseconds(100)));
            ready();
            EXPECT_TRUE(quick_begins.awaited(meeting_time));
            return passed_report("slow");
        }};
    verify_all({quick, slow}, Order::at_once, told.on_end());
    EXPECT_EQ(told.order().size(), 2U);
}

TEST(VerifyAll, OneThatCantTestKeepsNobodyWaiting) {
    Happening a, b;
    ToldEnds told;
    OneVerification const broken{"broken", [](Ready const&) -> Result<VfReport> {
                                     return fail(Problem::unavailable, "the host refuses", "wait");
                                 }};
    OneVerification const without_netdev{
        "without-netdev", [](Ready const&) { return passed_report("without-netdev"); }};
    OneVerification const throws{"throws", [](Ready const&) -> Result<VfReport> {
                                     throw std::runtime_error("a library's");
                                 }};
    verify_all({broken, meets("a", a, {&b}), without_netdev, meets("b", b, {&a}), throws},
               Order::at_once, told.on_end());
    ASSERT_FALSE(told.of("broken"));
    EXPECT_EQ(told.of("broken").error().detail, "the host refuses");
    ASSERT_FALSE(told.of("throws"));
    EXPECT_EQ(told.of("throws").error().problem, Problem::internal);
    EXPECT_THAT(told.of("throws").error().detail, HasSubstr("a library's"));
    ASSERT_TRUE(told.of("a"));
    EXPECT_THAT(told.of("a")->at_once_with, ElementsAre("b")) << "only whose tests have begun";
    ASSERT_TRUE(told.of("without-netdev"));
    EXPECT_THAT(told.of("without-netdev")->at_once_with, IsEmpty());
}

TEST(VerifyAll, OneByOneEachEndsBeforeTheNextBegins) {
    std::vector<std::string> log;
    auto const one = [&](std::string const& name) {
        return OneVerification{name, [&log, name](Ready const& ready) {
                                   ready();
                                   log.push_back(name + " runs");
                                   return passed_report(name);
                               }};
    };
    verify_all({one("b"), one("a")}, Order::one_by_one,
               [&](std::string const& name, Result<VfReport> const& report) {
                   ASSERT_TRUE(report);
                   EXPECT_THAT(report->at_once_with, IsEmpty());
                   log.push_back(name + " ended");
               });
    EXPECT_THAT(log, ElementsAre("b runs", "b ended", "a runs", "a ended"));
}

TEST(VerifyAll, NoneIsNothing) {
    ToldEnds told;
    verify_all({}, Order::at_once, told.on_end());
    verify_all({}, Order::one_by_one, told.on_end());
    EXPECT_THAT(told.order(), IsEmpty());
}

Deadline pace_at(int milliseconds) {
    return Deadline(std::chrono::hours(1)) + std::chrono::milliseconds(milliseconds);
}

TEST(Pace, LetsABurstThroughAndThenSoManyASecond) {
    Pace pace({.burst = 3, .per_second = 4});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(pace.turn(pace_at(0)), pace_at(0)) << i;
    EXPECT_EQ(pace.turn(pace_at(0)), pace_at(250));
    EXPECT_EQ(pace.turn(pace_at(0)), pace_at(500)) << "each waits behind the one before";
    EXPECT_EQ(pace.turn(pace_at(600)), pace_at(750));
}

TEST(Pace, APauseIsSavedUpForNoMoreThanABurst) {
    Pace pace({.burst = 2, .per_second = 4});
    for (int i = 0; i < 5; ++i) static_cast<void>(pace.turn(pace_at(0)));
    EXPECT_EQ(pace.turn(pace_at(60'000)), pace_at(60'000));
    EXPECT_EQ(pace.turn(pace_at(60'000)), pace_at(60'000));
    EXPECT_EQ(pace.turn(pace_at(60'000)), pace_at(60'250));
}

TEST(Pace, TheTurnIsWaitedFor) {
    Pace pace({.burst = 1, .per_second = 20});
    auto const start = std::chrono::steady_clock::now();
    pace.await();
    pace.await();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace vfmgr::guest
