// SPDX-License-Identifier: Apache-2.0
// Sets the number of VFs of a PF (sriov_numvfs). A free function; the caller holds the PF's claim.
// The write may block indefinitely, and with it PCI hot-plug of the whole host (KERNEL.md#locks).
// Facts: KERNEL.md#creating-vfs.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Refuses when a VF that would go is in use. All or none: ends when that many virtfn links exist.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, SetNumVfs const& step,
                                            Deadline deadline);

}  // namespace vfmgr
