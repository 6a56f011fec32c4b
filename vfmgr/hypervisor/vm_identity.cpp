// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/vm_identity.hpp"

#include <fmt/format.h>

namespace vfmgr {

Result<VmIdentity> vm_with_cid(HypervisorView const& view, std::uint32_t cid) {
    if (view.stale)
        return fail(
            Problem::unavailable,
            fmt::format("it is not known which VM has vsock CID {}: {}", cid, view.stale_reason),
            "check that libvirt runs: systemctl status libvirtd");
    std::optional<VmIdentity> found;
    for (auto const& [uuid, vm] : view.vms) {
        if (vm.vsock_cid != cid || !vm.start_id) continue;
        if (found)
            return fail(
                Problem::conflict,
                fmt::format("VMs {} and {} both have vsock CID {}", found->name, vm.name, cid),
                "let libvirt choose the CIDs: <cid auto='yes'/>");
        found = VmIdentity{vm.uuid, vm.name, *vm.start_id};
    }
    if (!found)
        return fail(Problem::not_found, fmt::format("no running VM has vsock CID {}", cid),
                    "list the running VMs: virsh list; a VM needs <vsock model='virtio'>");
    return *found;
}

}  // namespace vfmgr
