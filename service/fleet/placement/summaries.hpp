// SPDX-License-Identifier: Apache-2.0
// What the scheduler has to know of each host, from what the host reported and what the fleet says
// of it. Pure, but for the cache, which its owner alone uses.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/schedule/host_summary.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

// Free VFs are those that the host reports as free and that none of its reservations keeps. A PF
// that the host only observes, can't read or does not touch has none. Which GPUs a host has is not
// in its documents, so there are none: a request that is to be near GPUs suits no host yet.
[[nodiscard]] HostSummary summary_of(HostPart const& part, HostRecord const& record);

// The summaries of all hosts, each made again only when the host has reported something, or its
// record was written. One thread.
class Summaries {
  public:
    // Those of hosts that both know, by name; valid until the next call.
    [[nodiscard]] std::vector<HostSummary const*> of(InventoryView const& view, State const& state);
    [[nodiscard]] std::size_t made() const { return made_; }  // so far

  private:
    struct Kept {
        std::shared_ptr<HostPart const> part;
        Revision mod_revision = 0;
        HostSummary summary;
    };
    std::map<std::string, Kept, std::less<>> kept_;
    std::size_t made_ = 0;
};

}  // namespace vfmgr::fleet
