// SPDX-License-Identifier: Apache-2.0
// Performs steps, one function for each kind, in the files named below. Free functions; the caller
// holds the claims of what the step changes. The function for ConfigureVfs keeps its PF open from
// step to step, so it is in vf_settings.hpp.
#pragma once

#include <string>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

template <class S>
using PerformStep = Result<Observed>(LinuxKernelRoots const& roots, S const& step,
                                     Deadline deadline);

// --- vf_count.cpp; facts: KERNEL.md#creating-vfs -------------------------------------------

// Sets the number of VFs (sriov_numvfs). Refuses when a VF that would go is in use. All or none:
// ends when that many virtfn links exist. The write may block indefinitely, and with it PCI
// hot-plug of the whole host (KERNEL.md#locks).
[[nodiscard]] PerformStep<SetNumVfs> perform_step;

// --- driver_binding.cpp; facts: KERNEL.md#driver-binding, KERNEL.md#iommu-groups,
// KERNEL.md#function-level-reset ------------------------------------------------------------

// Refuses a VF in use. Refuses a VFIO driver while another member of the IOMMU group has, and
// keeps, a driver that could reach the guest's memory.
[[nodiscard]] PerformStep<BindVfs> perform_step;
[[nodiscard]] PerformStep<ResetVf> perform_step;

// --- external.cpp; facts: KERNEL.md#vfio-nodes ---------------------------------------------

// Refuses a VF that is held, or not bound to VFIO, and a uid where the VF's IOMMU group has other
// functions.
[[nodiscard]] PerformStep<AttachExternal> perform_step;
// vf_in_use, naming each process, while any holds the VF; the nodes have their owner by then.
[[nodiscard]] PerformStep<DetachExternal> perform_step;

// --- pci.cpp -------------------------------------------------------------------------------

// Writes only values that differ. Skips VFs that are gone.
[[nodiscard]] PerformStep<SetPciValues> perform_step;

// --- host_interface.cpp: each succeeds when the effect is already there ---------------------

[[nodiscard]] PerformStep<SetLink> perform_step;
[[nodiscard]] PerformStep<AwaitCarrier> perform_step;
// Refuses a VLAN or a name that is already taken.
[[nodiscard]] PerformStep<AddVlanInterface> perform_step;
// Removes only a device that vfmgr made.
[[nodiscard]] PerformStep<RemoveVlanInterface> perform_step;
[[nodiscard]] PerformStep<AddAddress> perform_step;
[[nodiscard]] PerformStep<RemoveAddress> perform_step;
[[nodiscard]] PerformStep<AddPeer> perform_step;
[[nodiscard]] PerformStep<RemovePeer> perform_step;
// Does nothing where the PF already has an RDMA device of any kind.
[[nodiscard]] PerformStep<AddRdmaLink> perform_step;
// Removes only a link that vfmgr named.
[[nodiscard]] PerformStep<RemoveRdmaLink> perform_step;

// --- rdma_links.cpp ------------------------------------------------------------------------

[[nodiscard]] PerformStep<AddSoftRdmaLink> perform_step;
// Fails with link_in_use while the link has users, or its users are unknown, unless forced; while a
// process uses it, even if forced: the kernel would wait for that process, and the caller would
// hang.
[[nodiscard]] PerformStep<RemoveSoftRdmaLink> perform_step;

// --- firmware.cpp --------------------------------------------------------------------------

// Blocks as long as the card's tool does, and longer when it hangs in the kernel.
[[nodiscard]] PerformStep<SetFirmware> perform_step;

// --- parts, for tests ----------------------------------------------------------------------

// "enp1s0.100", or a name made from the PF's address when that is longer than the kernel allows.
[[nodiscard]] std::string vlan_interface_name(PciAddress const& pf, std::string const& ifname,
                                              std::uint16_t vlan);

}  // namespace vfmgr
