// SPDX-License-Identifier: Apache-2.0
// The host's leg into a network: link, VLAN device, addresses, peers, SoftRoCE. Free functions; the
// caller holds the PF's claim. Each succeeds when its end already holds.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Up ends when there is carrier.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, SetLink const& step,
                                            Deadline deadline);
// Refuses a VLAN or a name that somebody else has.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddVlanLeg const& step,
                                            Deadline deadline);
// Only a device that vfmgr made.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveVlanLeg const& step, Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddAddress const& step,
                                            Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveAddress const& step, Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddPeer const& step,
                                            Deadline deadline);
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, RemovePeer const& step,
                                            Deadline deadline);
// Nothing to do where the PF has an RDMA device of whatever kind.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, AddRdmaLink const& step,
                                            Deadline deadline);
// Only one that vfmgr named.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveRdmaLink const& step, Deadline deadline);

// "enp1s0.100", or a name made from the PF's address when that is longer than the kernel allows.
[[nodiscard]] std::string vlan_leg_name(PciAddress const& pf, std::string const& ifname,
                                        std::uint16_t vlan);

}  // namespace vfmgr
