// SPDX-License-Identifier: Apache-2.0
// Counters of packets that did not get through, read before and after a run on both ends, and what
// their growth means: this places a loss on a side, where the drivers count (RDMA.md#counters).
// Reading queries sysfs and the kernel, a few milliseconds; the rest is pure. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/types/verification.hpp"

namespace vfmgr::verify {

struct CounterPlace {
    std::string ifname;       // and its lower devices: a VLAN device's NIC
    std::string rdma_device;  // empty: none
    std::uint8_t port = 1;
};

// Omits what can't be read.
[[nodiscard]] std::vector<Counter> read_counters(CounterPlace const& place,
                                                 std::filesystem::path const& sysfs = "/sys");

// The counters that grew, and by how much. One that did not exist before counts from 0.
[[nodiscard]] std::vector<Counter> growth(std::vector<Counter> const& before,
                                          std::vector<Counter> const& after);

// The losses that known counters show, each with a remedy.
[[nodiscard]] std::vector<Loss> explain_losses(std::vector<Counter> const& grown, Judge side);

// A netdev and its lower devices: a VLAN device has a NIC below it. From sysfs; any thread.

// The netdev first: "lower_enp1s0" in a VLAN device's folder.
[[nodiscard]] std::vector<std::string> stack_of(std::filesystem::path const& sysfs,
                                                std::string const& ifname);

// The folder of the netdev in the stack that has a PCI device; the netdev's own if none has.
[[nodiscard]] std::filesystem::path pci_netdev(std::filesystem::path const& sysfs,
                                               std::string const& ifname);

}  // namespace vfmgr::verify
