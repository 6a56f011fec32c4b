// SPDX-License-Identifier: Apache-2.0
// Counters of packets that did not get through, read before and after a run on both ends, and what
// their growth means: so a loss is placed on a side, where the drivers count (verification.md, what
// none of the peers has, 2). Reading asks sysfs and the kernel, some milliseconds; the rest is
// pure. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/types/verification.hpp"

namespace vfmgr::verify {

struct CounterPlace {
    std::string ifname;       // with what it lies on: a VLAN device's NIC
    std::string rdma_device;  // empty: none
    std::uint8_t port = 1;
};

// What can't be read is left out.
[[nodiscard]] std::vector<Counter> read_counters(CounterPlace const& place,
                                                 std::filesystem::path const& sysfs = "/sys");

// Those that grew, and by how much. What was not there before has grown from nothing.
[[nodiscard]] std::vector<Counter> growth(std::vector<Counter> const& before,
                                          std::vector<Counter> const& after);

// Those that are known, each with what to do about it.
[[nodiscard]] std::vector<Loss> explain_losses(std::vector<Counter> const& grown, Judge side);

}  // namespace vfmgr::verify
