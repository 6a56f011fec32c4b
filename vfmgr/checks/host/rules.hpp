// SPDX-License-Identifier: Apache-2.0
// Rules about what only a host has: its IOMMU, PCI ports, PFs, libvirt. vf-guest has none of them.
// No state; any thread.
#pragma once

#include <span>
#include <vector>

#include "vfmgr/checks/rule.hpp"

namespace vfmgr::checks {

// These rules and common_rules(), in the order of causes: earlier rules explain later ones.
[[nodiscard]] std::vector<Rule> all_rules();

extern std::span<Rule const> const iommu_rules;
extern std::span<Rule const> const pci_rules;
extern std::span<Rule const> const sriov_rules;
extern std::span<Rule const> const libvirt_rules;

// Listed by sriov.cpp.
[[nodiscard]] std::vector<Finding> judge_sriov_resources(Machine const& machine);
[[nodiscard]] std::vector<Finding> judge_sriov_owner(Machine const& machine);

}  // namespace vfmgr::checks
