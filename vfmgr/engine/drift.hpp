// SPDX-License-Identifier: Apache-2.0
// Which drift is known already, so that each is told once, and a storm of them is counted. Control
// thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/types/history_event.hpp"
#include "api/types/time.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {

// Who else makes or changes VFs of a PF: sentences.
using OwnersOfPfs = std::map<PciAddress, std::vector<std::string>>;

class DriftWatch {
  public:
    // What a look found, of the PFs that it could judge.
    struct Seen {
        std::vector<Drift> drift;
        std::set<PciAddress> judged;
        std::set<PciAddress> managed;  // of others nothing is said any more
        // Of those that have drift, by configuration files.
        OwnersOfPfs owners{};
        // Leases whose VM no operation is at: what such a VM has lost no operation on its PF took.
        std::set<std::string> judged_leases{};

        [[nodiscard]] bool can_judge(Drift const& one) const;
        [[nodiscard]] Seen losses() const;  // and nothing else is judged
    };
    // Events of what is new, of what changed and of what is over. `number` gives each event its
    // number. Nothing is remembered until commit(): an event that can't be kept comes again.
    [[nodiscard]] std::vector<HistoryEvent> look(Seen const& seen, Time at, Deadline now,
                                                 std::function<std::uint64_t()> const& number);
    void commit() { told_ = pending_; }
    // An operation gave a VM its VF back, so that the next loss is another: the end of the last.
    [[nodiscard]] std::optional<HistoryEvent> given_back(Attachment const& lease, Time at);
    // Number of the event that told of it; absent where a storm of them was counted.
    [[nodiscard]] std::optional<std::uint64_t> told_as(Drift const& drift) const;

  private:
    struct Known {
        Drift drift;
        std::uint64_t event = 0;
    };
    // The same thing again and again: after `changes_told_max` within a minute it is counted, and
    // the number told when the minute is over. What is taken from a VM is told each time.
    struct Storm {
        Deadline until{};
        unsigned changes = 0;
        unsigned untold = 0;
        Drift last{};
    };
    struct Told {
        std::map<std::string, Known> known;  // by key_of()
        std::map<std::string, Storm> storms;
    };
    [[nodiscard]] bool may_tell(Drift const& drift, Deadline now);
    Told told_;
    Told pending_;
};

}  // namespace vfmgr
