// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/topology_for_vm.hpp"

#include <algorithm>

#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/places.hpp"

namespace vfmgr::checks {
std::vector<std::string> blocked_paths(Machine const& host) {
    std::vector<std::string> notes;
    auto const acs = std::ranges::find(pci_rules, "pci.acs", &Rule::id);
    for (auto const& finding : acs->judge(host))
        if (is_bad(finding)) notes.push_back(finding.subject + ": " + finding.detail);
    return notes;
}

HostTopology topology_for_vm(Machine const& host, std::vector<VmHostdev> const& given) {
    HostTopology topology;
    for (auto const& one : given) {
        auto const* const device = find_pci(host, one.pci);
        if (!device || device->vendor() == 0 || !one.in_guest) continue;
        topology.functions.push_back(
            {*one.in_guest, device->vendor(), device->device(), place_of(host, *device)});
    }
    topology.notes = blocked_paths(host);
    return topology;
}

}  // namespace vfmgr::checks
