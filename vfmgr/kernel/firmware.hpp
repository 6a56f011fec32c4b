// SPDX-License-Identifier: Apache-2.0
// Reads the firmware settings of ConnectX cards with NVIDIA's own tool, mstconfig or mlxconfig: the
// kernel offers no other way to reach most of them. SetFirmware (steps.hpp) sets them. Free
// functions; any thread, one for each card. They block as long as the tool does, and longer when it
// hangs in the kernel.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Lists ConnectX cards by their first function, each with all of its functions; ascending.
struct CardFunctions {
    PciAddress pci;
    std::vector<PciAddress> functions;
    bool operator==(CardFunctions const&) const = default;
};
[[nodiscard]] Result<std::vector<CardFunctions>> list_cards(LinuxKernelRoots const& roots);

// If the read fails, the card's `problem` has the error, with the remedy.
[[nodiscard]] FirmwareCard read_card(LinuxKernelRoots const& roots, CardFunctions const& card,
                                     Deadline deadline);

}  // namespace vfmgr
