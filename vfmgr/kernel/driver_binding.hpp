// SPDX-License-Identifier: Apache-2.0
// Binds VFs to drivers, and resets them (function level reset). Free functions; the caller holds
// the VF's claim. Facts: KERNEL.md#driver-binding, KERNEL.md#iommu-groups,
// KERNEL.md#function-level-reset.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Refuses a VF in use. Refuses a VFIO driver while another member of the IOMMU group has, and
// keeps, a driver that could reach the guest's memory.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, BindVfs const& step,
                                            Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, ResetVf const& step,
                                            Deadline deadline);

}  // namespace vfmgr
