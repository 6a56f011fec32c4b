// SPDX-License-Identifier: Apache-2.0
// Writes the <hostdev> that gives a VM its VF. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/types/pci_address.hpp"

namespace vfmgr {

struct HostdevXml {
    PciAddress pci;                   // the VF on the host
    std::string alias;                // "ua-vfmgr-<attachment id>"
    std::optional<PciAddress> guest;  // its address in the guest; absent: libvirt chooses
};

// managed='no': vfmgr alone binds and resets VFs, so a VM whose VF is not yet restored and checked
// can't start with another owner's. Not <interface type='hostdev'>: libvirt would set MAC and VLAN
// itself, and on InfiniBand it can't (LIBVIRT.md#hostdev-not-interface).
[[nodiscard]] std::string to_xml(HostdevXml const& hostdev);

}  // namespace vfmgr
