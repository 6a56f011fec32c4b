// SPDX-License-Identifier: Apache-2.0
// What changed on the host between two observations, as events. Compares facts instead of whole
// views: a part that could not be read keeps its last known facts, so it has not changed. Values
// and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/types/event.hpp"
#include "api/types/time.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// The facts of a host that events report. Drift and attachments have their own events.
struct HostFacts {
    struct Pf {
        std::string name;  // for people
        Standing is = Standing::unknown;
        std::string trouble;          // what is wrong where it stands
        std::optional<bool> carrier;  // absent: never read, as is the next
        std::optional<std::uint16_t> num_vfs;
        std::optional<std::string> stuck;
        bool pci_busy = false;
        bool operator==(Pf const&) const = default;
    };
    struct Vm {
        std::string name;
        std::optional<std::int32_t> start_id;  // absent: it does not run
        bool operator==(Vm const&) const = default;
    };
    using Vms = std::map<std::string, Vm>;  // by UUID
    std::map<PciAddress, Pf> pfs;
    std::shared_ptr<Vms const> vms;  // the same object while none changes; null: never read
    std::optional<std::string> libvirt_lost;  // why
    bool operator==(HostFacts const&) const = default;
};

// Returns nullopt until the kernel and libvirt were observed. Costs as much as there are PFs and
// VMs; VFs cost nothing.
[[nodiscard]] std::optional<HostFacts> facts_of(HostView const& host, DesiredState const& desired,
                                                std::optional<HostFacts> const& before);
// Without `before`, the daemon has just started.
[[nodiscard]] std::vector<Event> changes(std::optional<HostFacts> const& before,
                                         HostFacts const& after, Time now);

// Keeps a link that goes up and down all the time from filling the store: after ten changes within
// a minute, what a PF's link is at the end of the minute is the next change.
class LinkFlaps {
  public:
    void damp(HostFacts const& before, HostFacts& after, Deadline now);

  private:
    struct Minute {
        Deadline until{};
        unsigned changes = 0;
    };
    std::map<PciAddress, Minute> minutes_;
};

}  // namespace vfmgr
