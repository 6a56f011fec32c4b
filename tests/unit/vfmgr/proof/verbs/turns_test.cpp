// SPDX-License-Identifier: Apache-2.0
// The responder's turns, on a clock that the test moves.
#include "vfmgr/proof/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "vfmgr/proof/permit.hpp"
#include "vfmgr/proof/turns.hpp"

namespace vfmgr::verify {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Deadline start{seconds(1000)};

TurnLimits few(std::size_t places, std::size_t places_each) {
    TurnLimits limits;
    limits.what = "sessions";
    limits.places = places;
    limits.places_each = places_each;
    return limits;
}

TEST(Turns, WhoComesFirstIsServedFirst) {
    Turns turns(few(2, 2));
    EXPECT_FALSE(turns.take("vm1", "a1", start).value());
    EXPECT_FALSE(turns.take("vm2", "a2", start).value());
    EXPECT_EQ(turns.take("vm3", "a3", start).value()->position, 1U);
    EXPECT_EQ(turns.take("vm4", "a4", start).value()->position, 2U);
    EXPECT_EQ(turns.take("vm3", "a3", start).value()->position, 1U) << "it asks again";
    turns.end("a1", start + seconds(5));
    EXPECT_EQ(turns.take("vm4", "a4", start).value()->position, 2U) << "not past the other";
    EXPECT_FALSE(turns.take("vm3", "a3", start).value());
    EXPECT_FALSE(turns.take("vm3", "a3", start).value()) << "who has a place keeps it";
}

TEST(Turns, AVmHasItsShareAndNoMore) {
    Turns turns(few(4, 2));
    EXPECT_FALSE(turns.take("greedy", "g1", start).value());
    EXPECT_FALSE(turns.take("greedy", "g2", start).value());
    EXPECT_TRUE(turns.take("greedy", "g3", start).value()->own);
    EXPECT_FALSE(turns.take("vm2", "a2", start).value()) << "others are not behind it";
    turns.end("g1", start);
    EXPECT_FALSE(turns.take("greedy", "g3", start).value());
}

TEST(Turns, WhoUsedMuchComesAfterWhoUsedLittle) {
    Turns turns(few(1, 1));
    EXPECT_FALSE(turns.take("greedy", "g1", start).value());
    auto const then = start + seconds(90);
    EXPECT_TRUE(turns.take("vm2", "a2", then).value());
    turns.end("g1", then);
    EXPECT_EQ(turns.take("greedy", "g1", then).value()->position, 2U);
    EXPECT_EQ(turns.take("vm3", "a3", then).value()->position, 2U) << "it has had nothing yet";
    EXPECT_FALSE(turns.take("vm2", "a2", then).value());
    turns.end("a2", then + seconds(5));
    EXPECT_EQ(turns.take("greedy", "g1", then + seconds(5)).value()->position, 2U);
    EXPECT_FALSE(turns.take("vm3", "a3", then + seconds(5)).value());
    turns.end("a3", then + seconds(10));
    EXPECT_FALSE(turns.take("greedy", "g1", then + seconds(10)).value());
}

TEST(Turns, APlaceIsKeptOnlyForWhoAsks) {
    Turns turns(few(1, 1));
    EXPECT_FALSE(turns.take("vm1", "a1", start).value());
    EXPECT_TRUE(turns.take("vm2", "a2", start).value());
    EXPECT_EQ(turns.take("vm3", "a3", start + seconds(15)).value()->position, 2U);
    EXPECT_EQ(turns.take("vm3", "a3", start + seconds(16)).value()->position, 1U);
    EXPECT_EQ(turns.waiting(), 1U);
}

TEST(Turns, TheQueueHasAnEnd) {
    auto limits = few(1, 1);
    limits.waiting_max = 3;
    limits.waiting_each_max = 2;
    Turns turns(limits);
    EXPECT_FALSE(turns.take("vm1", "a1", start).value());
    EXPECT_TRUE(turns.take("greedy", "g1", start));
    EXPECT_TRUE(turns.take("greedy", "g2", start));
    auto const third = turns.take("greedy", "g3", start);
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().problem, Problem::limit_exceeded);
    EXPECT_TRUE(turns.take("vm2", "a2", start)) << "that is the greedy one's limit";
    EXPECT_FALSE(turns.take("vm3", "a3", start));
}

TEST(Turns, TheEstimateFollowsWhatSessionsTake) {
    auto limits = few(2, 2);
    limits.usual = seconds(30);
    Turns turns(limits);
    for (auto const* key : {"a1", "a2"}) EXPECT_FALSE(turns.take(key, key, start).value());
    EXPECT_EQ(turns.take("a3", "a3", start).value()->seconds, 15U);
    EXPECT_EQ(turns.take("a4", "a4", start).value()->seconds, 30U);
    for (auto const* key : {"a1", "a2"}) turns.end(key, start + seconds(5));
    for (auto const* key : {"a3", "a4"})
        EXPECT_FALSE(turns.take(key, key, start + seconds(5)).value());
    EXPECT_LT(turns.take("a5", "a5", start + seconds(5)).value()->seconds, 15U);
}

TEST(Turns, AnAllowanceIsSpentAndRegained) {
    auto limits = few(1, 1);
    limits.allowance = {seconds(60), 0.25};
    Turns turns(limits);
    auto now = start;
    double spun = 0;
    while (now < start + seconds(3600)) {
        auto const turn = turns.take("greedy", "g1", now).value();
        if (turn) {
            EXPECT_TRUE(turn->own);
            now += seconds(turn->seconds);
            continue;
        }
        EXPECT_EQ(turns.take("vm2", "a2", now).value().value().position, 1U);
        turns.end("a2", now);
        now += seconds(20);
        spun += 20;
        turns.end("g1", now);
    }
    EXPECT_LE(spun, 60 + 20 + 3600 * 0.25);
    EXPECT_GE(spun, 3600 * 0.25);
    EXPECT_FALSE(turns.take("vm2", "a2", now).value()) << "that is no other VM's allowance";
}

// --- a greedy VM among honest ones ------------------------------------------------------------

// VMs that verify, pause for a random time, and verify again; each asks every two seconds while it
// waits. All begin at once.
class Host {
  public:
    explicit Host(ResponderLimits const& limits)
        : turns_(few(limits.sessions_max, limits.sessions_each_max)) {}

    void add(std::string vm, std::size_t attachments, seconds session, seconds pause) {
        for (std::size_t i = 0; i < attachments; ++i)
            guests_.push_back({vm, vm + "-" + std::to_string(i), session, pause, start});
    }
    void run(seconds time) {
        for (auto now = start; now < start + time; now += milliseconds(500))
            for (auto& guest : guests_) step(guest, now);
    }
    // From its request to its verdict.
    [[nodiscard]] double p99_of(std::string const& prefix) const {
        std::vector<double> all;
        for (auto const& guest : guests_)
            if (guest.vm.starts_with(prefix))
                all.insert(all.end(), guest.took.begin(), guest.took.end());
        std::ranges::sort(all);
        return all.empty() ? 1e9 : all[all.size() * 99 / 100];
    }
    // Counts per VM.
    [[nodiscard]] std::pair<std::size_t, std::size_t> fewest_and_most() const {
        std::pair<std::size_t, std::size_t> found{1'000'000, 0};
        for (auto const& guest : guests_) {
            if (!guest.vm.starts_with("honest")) continue;
            found.first = std::min(found.first, guest.took.size());
            found.second = std::max(found.second, guest.took.size());
        }
        return found;
    }

  private:
    struct Guest {
        std::string vm, key;
        seconds session, pause;
        Deadline requested, next = start;
        bool tests = false;
        std::vector<double> took{};
    };
    void step(Guest& guest, Deadline now) {
        if (now < guest.next) return;
        if (guest.tests) {
            turns_.end(guest.key, now);
            guest.took.push_back(std::chrono::duration<double>(now - guest.requested).count());
            guest.tests = false;
            guest.requested = guest.next =
                now + guest.pause / 2 + milliseconds(next_random(guest.pause));
            return;
        }
        auto const turn = turns_.take(guest.vm, guest.key, now);
        guest.tests = turn && !turn->has_value();
        guest.next = now + (guest.tests ? guest.session : seconds(2));
    }
    // Up to that time; the same in each run.
    long next_random(seconds most) {
        random_ = random_ * 1103515245 + 12345;
        return static_cast<long>(random_ >> 16) % (milliseconds(most).count() + 1);
    }
    Turns turns_;
    std::vector<Guest> guests_;
    std::uint32_t random_ = 1;
};

struct Load {
    char const* name;
    seconds pause;  // between runs of honest VMs
};
struct Greedy : testing::TestWithParam<Load> {};

TEST_P(Greedy, ChangesTheOthersP99ByLessThanTwice) {
    ResponderLimits const limits;
    Host alone(limits), beside(limits);
    for (int i = 0; i < 31; ++i)
        for (auto* host : {&alone, &beside})
            host->add("honest" + std::to_string(i), 1, seconds(6), GetParam().pause);
    // It holds each session until the responder ends it, and has as many attachments as may wait.
    beside.add("greedy", 16, seconds(limits.session_seconds_max), seconds(0));
    for (auto* host : {&alone, &beside}) host->run(seconds(3600));
    auto const before = alone.p99_of("honest"), after = beside.p99_of("honest");
    RecordProperty("p99_alone", std::to_string(before));
    RecordProperty("p99_beside_a_greedy_vm", std::to_string(after));
    EXPECT_LT(after / before, 2.0) << before << " s, then " << after << " s";
    auto const [fewest, most] = beside.fewest_and_most();
    EXPECT_LE(most - fewest, most / 10 + 1) << fewest << " to " << most << " verifications";
    EXPECT_GT(fewest, 0U);
    EXPECT_LT(beside.p99_of("greedy"), 1e9) << "it is served, too";
}

INSTANTIATE_TEST_SUITE_P(Turns, Greedy,
                         testing::Values(Load{"busy", seconds(1)}, Load{"usual", seconds(40)},
                                         Load{"quiet", seconds(300)}),
                         [](auto const& each) { return std::string(each.param.name); });

// --- waiting ----------------------------------------------------------------------------------

struct Waiter {
    Deadline now = start;
    std::vector<milliseconds> pauses;
    Waiting waiting(seconds patience) {
        Waiting made{start + patience};
        made.now = [this] { return now; };
        made.pause = [this](milliseconds time) {
            pauses.push_back(time);
            now += time;
        };
        return made;
    }
};

TEST(AwaitTurn, AsksAgainUntilItIsItsTurn) {
    Waiter waiter;
    int asked = 0;
    auto const got = await_turn<int>(
        [&]() -> Result<OrTurn<int>> {
            if (++asked < 4) return Turn{1, 20, false};
            return 17;
        },
        waiter.waiting(seconds(60)));
    EXPECT_EQ(got.value(), 17);
    EXPECT_EQ(waiter.pauses, std::vector<milliseconds>(3, milliseconds(5000)))
        << "a place in the queue is kept for 15 s";
}

TEST(AwaitTurn, GivesUpAndSaysWhy) {
    Waiter waiter;
    auto const got = await_turn<int>([]() -> Result<OrTurn<int>> { return Turn{3, 40, false}; },
                                     waiter.waiting(seconds(60)));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().problem, Problem::unavailable);
    EXPECT_EQ(got.error().detail,
              "gave up waiting for a place on the host: position 3 in its queue, about 40 s left");
    EXPECT_LE(waiter.now, start + seconds(60));
    EXPECT_GE(waiter.now, start + seconds(50));
}

TEST(AwaitTurn, DoesNotWaitForItsOwnWhereThatWaitsForIt) {
    Waiter waiter;
    auto waiting = waiter.waiting(seconds(60));
    auto const ask = []() -> Result<OrTurn<int>> { return Turn{1, 2, true}; };
    waiting.for_own = false;
    EXPECT_FALSE(await_turn<int>(ask, waiting));
    EXPECT_TRUE(waiter.pauses.empty());
    waiting.for_own = true;
    EXPECT_FALSE(await_turn<int>(ask, waiting));
    EXPECT_EQ(waiter.pauses.size(), 60U);
}

TEST(AwaitTurn, ARefusalIsNotAskedForAgain) {
    Waiter waiter;
    auto const got = await_turn<int>(
        []() -> Result<OrTurn<int>> { return fail(Problem::not_found, "no such run", ""); },
        waiter.waiting(seconds(60)));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().detail, "no such run");
    EXPECT_TRUE(waiter.pauses.empty());
}

}  // namespace
}  // namespace vfmgr::verify
