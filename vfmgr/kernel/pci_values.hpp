// SPDX-License-Identifier: Apache-2.0
// What steps change in sysfs only for as long as they last, and what puts it back when one was cut
// in two. Free functions; the caller holds the PF's claim.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Absent where the kernel has no such file, or does not say.
[[nodiscard]] std::optional<bool> read_drivers_autoprobe(LinuxKernelRoots const& roots,
                                                         PciAddress const& pf);
// "flr bus"; empty where the kernel can't reset it.
[[nodiscard]] std::string read_reset_methods(LinuxKernelRoots const& roots, PciAddress const& pci);

// The driver that the next probe is to bind; empty: whichever fits.
[[nodiscard]] Result<void> set_override(LinuxKernelRoots const& roots, PciAddress const& pci,
                                        std::string const& driver);

// Writes only what is not so already. A VF that is gone has nothing to be put back.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, SetPciValues const& step,
                                            Deadline deadline);

// --- parts ---

[[nodiscard]] Error refused_write(std::filesystem::path const& file, std::string const& detail,
                                  int error);

}  // namespace vfmgr
