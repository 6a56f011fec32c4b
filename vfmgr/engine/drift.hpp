// SPDX-License-Identifier: Apache-2.0
// Knows which drift was reported, so each is reported once and a storm is counted. Control thread
// only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/types/event.hpp"
#include "api/types/time.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {

// Sentences about what else makes or changes VFs of a PF.
using OwnersOfPfs = std::map<PciAddress, std::vector<std::string>>;

class DriftWatch {
  public:
    // The drift that one observation found, for the PFs it could judge.
    struct Observed {
        std::vector<Drift> drift;
        std::set<PciAddress> judged;
        std::set<PciAddress> managed;  // drift of other PFs is no longer reported
        // Owners of the PFs that have drift, found in configuration files.
        OwnersOfPfs owners{};
        // Attachments on whose VM no operation runs: if such a VM lost its VF, no operation on its
        // PF took it.
        std::set<std::string> judged_attachments{};

        [[nodiscard]] bool can_judge(Drift const& one) const;
        [[nodiscard]] Observed losses() const;  // the losses; nothing else is judged
    };
    // Returns events for new, changed and ended drift. `number` gives each event its number.
    // Nothing is remembered until commit(): an event that can't be stored comes again.
    [[nodiscard]] std::vector<Event> events_of(Observed const& observed, Time at, Deadline now,
                                               std::function<std::uint64_t()> const& number);
    void commit() { reported_ = pending_; }
    // An operation returned a VM's VF, so the next loss is a new one. Returns the event that ends
    // the last.
    [[nodiscard]] std::optional<Event> restored(Attachment const& attachment, Time at);
    // Returns the number of the event that reported it; absent where it was counted in a storm.
    [[nodiscard]] std::optional<std::uint64_t> reported_as(Drift const& drift) const;

  private:
    struct Known {
        Drift drift;
        std::uint64_t event = 0;
    };
    // Drift that repeats: after `changes_reported_max` within a minute it is only counted, and the
    // count is reported when the minute is over. A VM's loss is reported each time.
    struct Storm {
        Deadline until{};
        unsigned changes = 0;
        unsigned unreported = 0;
        Drift last{};
    };
    struct Reported {
        std::map<std::string, Known> known;  // by key_of()
        std::map<std::string, Storm> storms;
    };
    [[nodiscard]] bool may_report(Drift const& drift, Deadline now);
    Reported reported_;
    Reported pending_;
};

}  // namespace vfmgr
