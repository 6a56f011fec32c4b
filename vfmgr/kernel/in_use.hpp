// SPDX-License-Identifier: Apache-2.0
// Detects whether a VF is in use. The kernel protects nothing: it takes a VF out of a running VM
// silently (KERNEL.md#vfs-in-use). So the process that changes a VF checks which processes hold it
// open, and itself holds its VFIO group while it writes. What can't be read counts as used.
// Free functions; any thread. A GroupHold is owned by the thread that writes.
#pragma once

#include <sys/types.h>

#include <map>
#include <span>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/vf.hpp"
#include "vfmgr/kernel/rdma_links.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// A VF with its current address.
struct VfAt {
    VfId id;
    PciAddress pci;
};

// A VF's IOMMU group, and the device numbers of the VFIO nodes that can hold the VF: its group's
// and its own.
struct VfioNodes {
    std::optional<std::uint32_t> group;
    std::vector<dev_t> numbers;
    std::optional<VfioPaths> paths{};  // of these nodes; absent: there are none
};
[[nodiscard]] VfioNodes read_vfio_nodes(LinuxKernelRoots const& roots, PciAddress const& pci);
// The numbers alone.
[[nodiscard]] std::vector<dev_t> vfio_nodes_of(LinuxKernelRoots const& roots,
                                               PciAddress const& pci);

// Keyed by device number, so neither mount namespaces nor other names for a node hide a holder.
using Holders = std::map<dev_t, std::vector<VfioHolder>>;
// A process other than this one that has a PF's sriov_numvfs open for writing.
struct NumVfsWriter {
    PciAddress pf;
    std::int32_t pid = 0;
    std::string comm;
    bool operator==(NumVfsWriter const&) const = default;
};

// What all processes except this one have open.
struct OpenFiles {
    // An Error when any process's descriptors can't be read.
    Result<Holders> holders;
    // Leaves out processes whose descriptors can't be read: this explains, it does not guard.
    std::vector<NumVfsWriter> numvfs_writers;
};
// Both in one pass: a host has thousands of descriptors.
[[nodiscard]] OpenFiles find_open_files(LinuxKernelRoots const& roots,
                                        std::vector<dev_t> const& nodes);
// One of them alone.
[[nodiscard]] Result<Holders> find_holders(LinuxKernelRoots const& roots,
                                           std::vector<dev_t> const& nodes);
[[nodiscard]] std::vector<NumVfsWriter> find_numvfs_writers(LinuxKernelRoots const& roots);
// One entry for each process.
[[nodiscard]] std::vector<VfioHolder> holders_of(Holders const& holders,
                                                 std::vector<dev_t> const& nodes);

// Holds the VFIO groups of some VFs open: while it lives no other process can begin to use them,
// but the kernel may still remove or unbind them. A group has one opener at a time
// [src vfio_main.c], so a successful open proves atomically that the group was unused.
class GroupHold {
  public:
    // vf_in_use, naming VF and process, when any is held.
    [[nodiscard]] static Result<GroupHold> take(LinuxKernelRoots const& roots,
                                                std::span<VfAt const> vfs);
    [[nodiscard]] std::size_t groups_held() const { return groups_.size(); }

  private:
    explicit GroupHold(std::vector<FileDescriptor> groups) : groups_(std::move(groups)) {}
    std::vector<FileDescriptor> groups_;
};

// Checks all of the above and the VFs' own network devices: one that is up with an address, or part
// of a bridge or bond, is in use by this host. So is an Ethernet VF with a driver and no network
// device: it may be in another network namespace. Keep the GroupHold until the write has returned.
[[nodiscard]] Result<GroupHold> guard_unused(LinuxKernelRoots const& roots, HostNetdevs const& host,
                                             std::span<VfAt const> vfs);

}  // namespace vfmgr
