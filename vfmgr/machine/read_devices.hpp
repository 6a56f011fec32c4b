// SPDX-License-Identifier: Apache-2.0
// Parses devices from sysfs's files, links and folders. Pure; any thread.
#pragma once

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// Sorted by address or name. A tree that lacks parts yields what it has. A field of a missing part
// notes that in `reads`, which outlives the field, when it is read.
[[nodiscard]] Known<std::vector<PciDevice>> read_pci_devices(Facts const& facts, Reads& reads);
[[nodiscard]] Known<std::vector<MachineNetdev>> read_netdevs(Facts const& facts, Reads& reads);
[[nodiscard]] Known<std::vector<MachineRdmaDevice>> read_rdma_devices(Facts const& facts,
                                                                      Reads& reads);

// "0x15b3", "4096", "-1".
[[nodiscard]] std::optional<std::int64_t> parse_number(std::string_view text);
// "8.0 GT/s PCIe", "5 GT/s"; nothing for "Unknown".
[[nodiscard]] std::optional<double> parse_link_speed(std::string_view text);
// "4: ACTIVE" is ACTIVE.
[[nodiscard]] std::string_view parse_port_state(std::string_view text);
// 0005:00:00.0 and 0005:03:00.0 of "../../../devices/pci0005:00/0005:00:00.0/0005:03:00.0".
[[nodiscard]] std::vector<PciAddress> parse_pci_path(std::string_view target);

}  // namespace vfmgr::checks
