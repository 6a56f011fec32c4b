// SPDX-License-Identifier: Apache-2.0
// Is a VF used by anybody? The kernel protects nothing: it takes a VF out of a running VM without a
// word (kernel-and-libvirt.md, 2). So the process that changes a VF asks who holds it open, and
// itself holds its VFIO group while it writes. What can't be read counts as used.
// Free functions; any thread. A GroupLease is owned by the thread that writes.
#pragma once

#include <sys/types.h>

#include <map>
#include <span>
#include <vector>

#include "api/types/file_descriptor.hpp"
#include "api/types/vf_state.hpp"
#include "vfmgr/kernel/network_snapshot.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// A VF with its address of now.
struct VfAt {
    VfId id;
    PciAddress pci;
};

// Device numbers of the VFIO nodes through which a VF can be held: its group's and its own.
[[nodiscard]] std::vector<dev_t> vfio_nodes_of(LinuxKernelRoots const& roots,
                                               PciAddress const& pci);

// By device number, so that neither mount namespaces nor other names for a node hide a holder.
using Holders = std::map<dev_t, std::vector<VfioHolder>>;
// All processes but this one. An Error when any process's descriptors can't be read.
[[nodiscard]] Result<Holders> find_holders(LinuxKernelRoots const& roots,
                                           std::vector<dev_t> const& nodes);
// Without repeats, by process.
[[nodiscard]] std::vector<VfioHolder> holders_of(Holders const& holders,
                                                 std::vector<dev_t> const& nodes);

// The VFIO groups of some VFs, held open: while it lives nobody else can begin to use them, and the
// kernel may still remove or unbind them. A group has one opener at a time [src vfio_main.c], so an
// open that succeeds says atomically that nobody used it.
class GroupLease {
  public:
    // vf_in_use naming VF and process when any is held.
    [[nodiscard]] static Result<GroupLease> take(LinuxKernelRoots const& roots,
                                                 std::span<VfAt const> vfs);
    [[nodiscard]] std::size_t groups_held() const { return groups_.size(); }

  private:
    explicit GroupLease(std::vector<FileDescriptor> groups) : groups_(std::move(groups)) {}
    std::vector<FileDescriptor> groups_;
};

// Everything above and the VFs' own network devices: one that is up with an address, or part of a
// bridge or bond, is in use by this host. So is an Ethernet VF with a driver and without a network
// device: it may be in another network namespace. The lease is to be held until the write returned.
[[nodiscard]] Result<GroupLease> guard_unused(LinuxKernelRoots const& roots,
                                              HostNetdevs const& host, std::span<VfAt const> vfs);

}  // namespace vfmgr
