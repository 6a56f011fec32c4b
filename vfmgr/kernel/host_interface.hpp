// SPDX-License-Identifier: Apache-2.0
// Configures the host interface: link, VLAN device, addresses, peers, SoftRoCE. Free functions; the
// caller holds the PF's claim. Each succeeds when the effect is already there.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Setting a link up ends when it has carrier.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, SetLink const& step,
                                            Deadline deadline);
// Refuses a VLAN or a name that is already taken.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            AddVlanInterface const& step, Deadline deadline);
// Removes only a device that vfmgr made.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveVlanInterface const& step, Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddAddress const& step,
                                            Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveAddress const& step, Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddPeer const& step,
                                            Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, RemovePeer const& step,
                                            Deadline deadline);
// Does nothing where the PF already has an RDMA device of any kind.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddRdmaLink const& step,
                                            Deadline deadline);
// Removes only a link that vfmgr named.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveRdmaLink const& step, Deadline deadline);

// "enp1s0.100", or a name made from the PF's address when that is longer than the kernel allows.
[[nodiscard]] std::string vlan_interface_name(PciAddress const& pf, std::string const& ifname,
                                              std::uint16_t vlan);

}  // namespace vfmgr
