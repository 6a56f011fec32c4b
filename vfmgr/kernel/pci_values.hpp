// SPDX-License-Identifier: Apache-2.0
// Reads and restores the sysfs values that a step changes only while it runs, for steps that were
// interrupted. Free functions; the caller holds the PF's claim.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Absent when the kernel has no such file, or can't read it.
[[nodiscard]] std::optional<bool> read_drivers_autoprobe(LinuxKernelRoots const& roots,
                                                         PciAddress const& pf);
// Returns "flr bus", for example; empty when the kernel can't reset the function.
[[nodiscard]] std::string read_reset_methods(LinuxKernelRoots const& roots, PciAddress const& pci);

// Sets the driver that the next probe binds. Empty: any driver that matches.
[[nodiscard]] Result<void> set_override(LinuxKernelRoots const& roots, PciAddress const& pci,
                                        std::string const& driver);

// Writes only values that differ. Skips VFs that are gone.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, SetPciValues const& step,
                                            Deadline deadline);

// --- parts ---

[[nodiscard]] Error refused_write(std::filesystem::path const& file, std::string const& detail,
                                  int error);

}  // namespace vfmgr
