// SPDX-License-Identifier: Apache-2.0
// A fair queue for places that many VMs share. It orders a VM's turns by the time that the VM has
// already used: a VM that needs much waits behind those that need little (start-time fair queueing,
// Goyal 1996). It has no clock, lock or thread of its own: callers pass the time, and the owner's
// lock guards it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::verify {

struct TurnLimits {
    std::string what;             // "RDMA sessions", in errors
    std::size_t places = 1;       // held at once
    std::size_t places_each = 1;  // by one VM
    std::size_t waiting_max = 512;
    std::size_t waiting_each_max = 16;
    // A waiting client that does not ask again for this long loses its place in the queue.
    std::chrono::seconds patience{15};
    std::chrono::seconds usual{10};  // estimate of how long a place is held, until some have ended
    // The time that a VM may save up, and how much of it returns each second. Without an allowance
    // a VM's time is not limited.
    struct Allowance {
        std::chrono::seconds saved_max{60};
        double regained = 1;
    };
    std::optional<Allowance> allowance{};
};

class Turns {
  public:
    explicit Turns(TurnLimits limits);
    // Returns nothing when `key` gets a place, which it holds until end(); a turn when it has to
    // wait; limit_exceeded when the queue is full.
    [[nodiscard]] Result<std::optional<Turn>> take(std::string const& vm, std::string const& key,
                                                   Deadline now);
    // Frees the place of `key`, or removes it from the queue.
    void end(std::string const& key, Deadline now);
    [[nodiscard]] std::size_t held() const { return held_.size(); }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

  private:
    struct Held {
        std::string vm;
        Deadline since{};
    };
    struct Waiting {
        std::string vm, key;
        double start = 0;  // in seconds of use; the lowest is served first
        Deadline asked_at{};
    };
    struct Saved {
        double seconds = 0;
        Deadline at{};
    };
    [[nodiscard]] Result<void> enter(std::string const& vm, std::string const& key, Deadline now);
    [[nodiscard]] Turn place_of(std::string const& key) const;
    [[nodiscard]] std::size_t held_by(std::string const& vm) const;
    [[nodiscard]] std::size_t waiting_of(std::string const& vm) const;
    [[nodiscard]] std::uint32_t estimate(std::size_t before) const;
    [[nodiscard]] std::optional<Turn> wait_for_allowance(std::string const& vm, Deadline now);
    void spend(std::string const& vm, double seconds, Deadline now);
    void forget_idle(Deadline now);

    TurnLimits limits_;
    double usual_;                        // seconds; average of the places that have ended
    double served_ = 0;                   // start of the last one served
    std::map<std::string, Held> held_;    // by key
    std::vector<Waiting> waiting_;        // in order of service
    std::map<std::string, double> used_;  // by VM: start of its next turn
    std::map<std::string, Saved> saved_;  // by VM
};

// Waits for a place in a host's queue, and keeps it by repeating the request. Blocking; one thread.

// A measurement waits this long for its stream; then it is skipped with the reason.
inline constexpr std::chrono::seconds stream_patience{30};

struct Waiting {
    Deadline until;       // it gives up then
    bool for_own = true;  // it also waits for sessions or streams of its own VM
    std::function<Deadline()> now = [] { return std::chrono::steady_clock::now(); };
    // Sleeps between two tries: the host sends no event when a place becomes free.
    std::function<void(std::chrono::milliseconds)> pause{};
};
[[nodiscard]] Waiting wait_until(Deadline until);

// Returns the time until the next try, or nothing when it gives up.
[[nodiscard]] std::optional<std::chrono::milliseconds> next_try(Turn const& turn,
                                                                Waiting const& waiting);
// The error, unavailable, that names the position in the queue and the time left.
[[nodiscard]] Error gave_up(Turn const& turn);

// Repeats the request until the host offers a place or fails.
template <class T>
[[nodiscard]] Result<T> await_turn(std::function<Result<OrTurn<T>>()> const& ask,
                                   Waiting const& waiting) {
    while (true) {
        VFMGR_TRY(auto answer, ask());
        auto const* const turn = std::get_if<Turn>(&answer);
        if (!turn) return std::get<T>(std::move(answer));
        auto const time = next_try(*turn, waiting);
        if (!time) return fail(gave_up(*turn));
        waiting.pause(*time);
    }
}

}  // namespace vfmgr::verify
