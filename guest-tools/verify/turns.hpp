// SPDX-License-Identifier: Apache-2.0
// Who of many VMs comes next where there is room for few: a fair queue of values, without clock,
// lock or thread of its own. A VM's turns are ordered by the time that it has used already, so that
// one that wants much waits behind all that want little (start-time fair queueing, Goyal 1996). Not
// synchronised: the owner's lock guards it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "api/types/turn.hpp"

namespace vfmgr::verify {

struct TurnLimits {
    std::string what;             // "RDMA sessions", in errors
    std::size_t places = 1;       // held at once
    std::size_t places_each = 1;  // of them by one VM
    std::size_t waiting_max = 512;
    std::size_t waiting_each_max = 16;
    // A place in the queue is kept for so long after it was asked for.
    std::chrono::seconds patience{15};
    std::chrono::seconds usual{10};  // how long a place is held, as long as nothing is known
    // Time that a VM may save up, and how much it regains each second; without, it may always.
    struct Allowance {
        std::chrono::seconds saved_max{60};
        double regained = 1;
    };
    std::optional<Allowance> allowance{};
};

class Turns {
  public:
    explicit Turns(TurnLimits limits);
    // Nothing: `key` holds a place from now on, until end(). limit_exceeded: the queue is full.
    [[nodiscard]] Result<std::optional<Turn>> take(std::string const& vm, std::string const& key,
                                                   Deadline now);
    // Gives the place back, or leaves the queue.
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
        double start = 0;  // in seconds of use: the least comes first
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
    double usual_;                        // seconds, of those that ended
    double served_ = 0;                   // where the last that came was in the order
    std::map<std::string, Held> held_;    // by key
    std::vector<Waiting> waiting_;        // the next first
    std::map<std::string, double> used_;  // by VM: where its next starts
    std::map<std::string, Saved> saved_;  // by VM
};

}  // namespace vfmgr::verify
