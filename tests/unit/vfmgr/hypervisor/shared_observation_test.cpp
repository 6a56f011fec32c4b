// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace vfmgr {
namespace {

// An observation that reports its start and whose end the test decides.
struct SlowObservation {
    std::promise<void> has_begun;
    std::promise<void> may_end;
    SharedObservation::Observe observe = [this] {
        has_begun.set_value();
        may_end.get_future().wait();
        return Result<HypervisorView>(HypervisorView{});
    };
};

// Returns the number of an observation, as the time at which it was made.
SharedObservation::Observe counting(std::atomic<int>& looks) {
    return [&looks] {
        HypervisorView view;
        view.observed_at = Time(std::chrono::seconds(++looks));
        return Result<HypervisorView>(std::move(view));
    };
}

// Runs `ask` on `callers` threads during an observation that began before they called; `looks`
// counts the observations of these threads.
void ask_during_a_look(SharedObservation& shared, std::size_t callers,
                       std::atomic<int> const& looks, std::function<void()> const& ask) {
    SlowObservation slow;
    std::thread first([&] { EXPECT_TRUE(shared.ask(slow.observe)); });
    slow.has_begun.get_future().wait();
    std::vector<std::thread> others;
    for (std::size_t i = 0; i < callers; ++i) others.emplace_back(ask);
    while (shared.waiting() < callers) std::this_thread::yield();
    EXPECT_EQ(looks, 0) << "none of them takes what the first one's look finds";
    slow.may_end.set_value();
    first.join();
    for (auto& each : others) each.join();
}

TEST(SharedObservation, ServesAllWhoAskedBeforeItBegan) {
    SharedObservation shared;
    std::atomic<int> looks{0};
    ask_during_a_look(shared, 8, looks, [&] {
        auto const view = shared.ask(counting(looks));
        EXPECT_EQ(view.value().observed_at, Time(std::chrono::seconds(1)));
    });
    EXPECT_EQ(looks, 1);
    EXPECT_EQ(shared.waiting(), 0U);
}

TEST(SharedObservation, LooksAgainForWhoAsksAgain) {
    SharedObservation shared;
    std::atomic<int> looks{0};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(shared.ask(counting(looks)));
    EXPECT_EQ(looks, 3);
}

TEST(SharedObservation, AnErrorIsEverybodys) {
    SharedObservation shared;
    auto const refused = shared.ask(
        [] { return Result<HypervisorView>(fail(Problem::unavailable, "it is down", "")); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "it is down");
}

TEST(SharedObservation, ABugInALookKeepsNobodyWaiting) {
    SharedObservation shared;
    std::atomic<int> looks{0};
    std::atomic<int> thrown{0};
    ask_during_a_look(shared, 4, looks, [&] {
        try {
            static_cast<void>(shared.ask([&]() -> Result<HypervisorView> {
                if (++looks == 1) throw std::runtime_error("a bug");
                return HypervisorView{};
            }));
        } catch (std::runtime_error const&) {
            ++thrown;
        }
    });
    EXPECT_EQ(thrown, 1);
    EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace vfmgr
