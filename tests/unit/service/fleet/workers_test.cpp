// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <vector>

namespace vfmgr::fleet {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

// Holds work until it is opened.
class Gateway {
  public:
    Workers::Work work() {
        return [this](std::stop_token const&) {
            std::unique_lock lock(mutex_);
            ++inside_;
            changed_.notify_all();
            changed_.wait(lock, [this] { return open_; });
        };
    }
    void wait_for(int inside) {
        std::unique_lock lock(mutex_);
        ASSERT_TRUE(changed_.wait_for(lock, seconds(60), [&] { return inside_ >= inside; }));
    }
    int inside() {
        std::lock_guard const lock(mutex_);
        return inside_;
    }
    void open() {
        std::lock_guard const lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int inside_ = 0;
    bool open_ = false;
};

Deadline in(seconds time) {
    return std::chrono::steady_clock::now() + time;
}

TEST(Workers, RunWhatIsSubmitted) {
    Workers workers({.threads = 2});
    std::promise<void> ran;
    ASSERT_TRUE(workers.submit("a", [&](std::stop_token const&) { ran.set_value(); }));
    EXPECT_EQ(ran.get_future().wait_for(seconds(60)), std::future_status::ready);
}

TEST(Workers, APrincipalHasHalfOfTheThreads) {
    Gateway gateway;
    Workers workers({.threads = 4});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(workers.submit("greedy", gateway.work()));
    gateway.wait_for(2);
    std::promise<void> ran;
    ASSERT_TRUE(workers.submit("other", [&](std::stop_token const&) { ran.set_value(); }));
    EXPECT_EQ(ran.get_future().wait_for(seconds(60)), std::future_status::ready)
        << "while greedy's two run, and eight wait";
    EXPECT_EQ(gateway.inside(), 2);
    gateway.open();
}

TEST(Workers, PrincipalsTakeTurns) {
    Gateway gateway;
    std::vector<std::string> order;  // one thread writes it
    std::promise<void> all;
    Workers workers({.threads = 1});
    ASSERT_TRUE(workers.submit("x", gateway.work()));
    gateway.wait_for(1);
    for (auto const* who : {"a", "a", "a", "b"})
        ASSERT_TRUE(workers.submit(who, [&, who](std::stop_token const&) {
            order.emplace_back(who);
            if (order.size() == 4) all.set_value();
        }));
    gateway.open();
    ASSERT_EQ(all.get_future().wait_for(seconds(60)), std::future_status::ready);
    EXPECT_THAT(order, ElementsAre("a", "b", "a", "a"));
}

TEST(Workers, WhoHasItsShareWaitingIsRefused) {
    Gateway gateway;
    Workers workers({.threads = 2, .waiting_max = 6, .waiting_each_max = 3});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(workers.submit("a", gateway.work()));
    auto const refused = workers.submit("a", gateway.work());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_EQ(refused.error().detail, "3 requests from a are waiting already");
    EXPECT_TRUE(workers.submit("b", gateway.work()));
    EXPECT_EQ(workers.load().refused, 1U);
    gateway.open();
}

TEST(Workers, TooMuchOfAllIsRefused) {
    Gateway gateway;
    Workers workers({.threads = 2, .waiting_max = 2, .waiting_each_max = 3});
    ASSERT_TRUE(workers.submit("a", gateway.work()));
    ASSERT_TRUE(workers.submit("b", gateway.work()));
    gateway.wait_for(2);
    ASSERT_TRUE(workers.submit("c", gateway.work()));
    ASSERT_TRUE(workers.submit("d", gateway.work()));
    auto const refused = workers.submit("e", gateway.work());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "2 requests are waiting already");
    EXPECT_EQ(workers.load().waiting, 2U);
    EXPECT_EQ(workers.load().running, 2U);
    gateway.open();
}

TEST(Workers, AStopDropsWhatWaitsAndTellsWhatRuns) {
    Workers workers({.threads = 1});
    std::promise<void> began;
    std::atomic<bool> told = false;
    ASSERT_TRUE(workers.submit("a", [&](std::stop_token const& stop) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        began.set_value();
        never.wait(lock, stop, [] { return false; });
        told = stop.stop_requested();
    }));
    began.get_future().wait();
    auto const dropped = std::make_shared<int>(0);
    ASSERT_TRUE(workers.submit("a", [dropped](std::stop_token const&) { ++*dropped; }));
    EXPECT_TRUE(workers.stop(in(seconds(60))));
    EXPECT_TRUE(told);
    EXPECT_EQ(*dropped, 0);
    EXPECT_EQ(dropped.use_count(), 1) << "what it would have answered is let go";
    auto const late = workers.submit("b", [](std::stop_token const&) {});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().problem, Problem::unavailable);
}

TEST(Workers, AStopDoesNotWaitBeyondItsDeadline) {
    Gateway gateway;
    Workers workers({.threads = 1});
    ASSERT_TRUE(workers.submit("a", gateway.work()));
    gateway.wait_for(1);
    EXPECT_FALSE(workers.stop(in(seconds(0))));
    gateway.open();
    EXPECT_TRUE(workers.stop(in(seconds(60))));
}

TEST(Workers, AnExceptionEndsItsWorkAlone) {
    std::promise<std::string> bug;
    Workers workers({.threads = 1}, [&](std::string const& what) { bug.set_value(what); });
    ASSERT_TRUE(
        workers.submit("a", [](std::stop_token const&) { throw std::runtime_error("oh no"); }));
    EXPECT_EQ(bug.get_future().get(), "oh no");
    std::promise<void> ran;
    ASSERT_TRUE(workers.submit("a", [&](std::stop_token const&) { ran.set_value(); }));
    EXPECT_EQ(ran.get_future().wait_for(seconds(60)), std::future_status::ready);
}

}  // namespace
}  // namespace vfmgr::fleet
