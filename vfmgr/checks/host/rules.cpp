// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/rules.hpp"

namespace vfmgr::checks {

std::vector<Rule> all_rules() {
    return joined({iommu_rules, pci_rules, sriov_rules, libvirt_rules, common_rules()});
}

}  // namespace vfmgr::checks
