// SPDX-License-Identifier: Apache-2.0
// A netdev and its lower devices: a VLAN device has a NIC below it. From sysfs; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vfmgr::verify {

// The netdev first: "lower_enp1s0" in a VLAN device's folder.
[[nodiscard]] std::vector<std::string> stack_of(std::filesystem::path const& sysfs,
                                                std::string const& ifname);

// The folder of the netdev in the stack that has a PCI device; the netdev's own if none has.
[[nodiscard]] std::filesystem::path pci_netdev(std::filesystem::path const& sysfs,
                                               std::string const& ifname);

}  // namespace vfmgr::verify
