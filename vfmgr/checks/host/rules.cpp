// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/rules.hpp"

namespace vfmgr::checks {

std::vector<Rule> all_rules() {
    auto all = common_rules();
    auto const of_hosts = joined({iommu_rules, pci_rules, sriov_rules, libvirt_rules});
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(device_log_rules.size()), of_hosts.begin(),
               of_hosts.end());
    return all;
}

}  // namespace vfmgr::checks
