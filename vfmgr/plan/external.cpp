// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/external.hpp"

#include <fmt/format.h>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

// Seeds the MACs that are chosen for the holder, as a VM's UUID does.
VmInfo external_vm(std::string const& name) {
    VmInfo vm;
    vm.uuid = external_key(name);
    vm.name = name;
    vm.state = VmState::shut_off;
    return vm;
}

std::string in_use_as(std::vector<VfUse> const& uses, std::uint16_t index) {
    for (auto const& use : uses)
        if (use.vf.index == index) return use.reason;
    return {};
}

}  // namespace

std::string const& receiver_of(AttachmentSpec const& spec) {
    return spec.holder ? spec.holder->name : spec.vm;
}

Result<VmInfo> vm_for(HostView const& host, AttachmentSpec const& spec) {
    if (spec.holder) {
        // Any VM's XML may name the VF that is to be chosen.
        VFMGR_CHECK(require_libvirt(host));
        return external_vm(spec.holder->name);
    }
    VFMGR_TRY(VmInfo const* vm, readable_vm(host, spec.vm));
    return *vm;
}

Result<VmInfo> vm_of(HostView const& host, Attachment const& attachment) {
    if (attachment.holder) {
        VFMGR_CHECK(require_libvirt(host));
        auto vm = external_vm(attachment.holder->name);
        auto const* const vf = find_vf(host, attachment.vf);
        if (vf && !vf->holders.empty()) vm.state = VmState::running;
        return vm;
    }
    VFMGR_TRY(VmInfo const* vm, readable_vm(host, attachment.vm_uuid));
    return *vm;
}

void set_receiver(Attachment& attachment, VmInfo const& vm) {
    attachment.holder = attachment.spec.holder;
    attachment.vm = vm.name;
    if (!attachment.holder) attachment.vm_uuid = vm.uuid;
}

std::optional<std::string> vm_uuid_of(Attachment const& attachment) {
    return attachment.holder ? std::nullopt : std::optional(attachment.vm_uuid);
}

Result<void> check_group_of(HostView const& host, DesiredState const& desired,
                            Attachment const& attachment) {
    auto const* const own = find_vf(host, attachment.vf);
    if (!own || !attachment.spec.holder || !attachment.spec.holder->uid) return {};
    for (auto const& [pci, pf] : host.kernel.pfs)
        for (auto const& vf : pf.vfs) {
            if (vf.iommu_group != own->iommu_group || vf.pci == own->pci) continue;
            auto const use = in_use_as(vf_uses(host, desired, pci), vf.index);
            return fail(
                Problem::conflict,
                fmt::format("VF {} shares IOMMU group {} with VF {}{}: user {} could open both",
                            to_string(attachment.vf), own->iommu_group.value_or(0),
                            to_string(VfId{pci, vf.index}), use.empty() ? "" : ", which is " + use,
                            *attachment.spec.holder->uid),
                "leave the uid out, so that only root opens it; or move the NIC to a slot behind a "
                "switch with ACS");
        }
    return {};
}

Error no_proof_by_external(std::string const& holder) {
    return discreetly(
        {Problem::unsupported,
         fmt::format(
             "{} is no VM of libvirt, so this host knows no vsock device by which its guest "
             "could prove RDMA",
             holder),
         "attach with guest_plane tcp; or without verification: verify none, no "
         "verify_every_seconds; and test in the guest against another host's responder: vf-guest "
         "verify --responder"});
}

AttachExternal attach_external(Attachment const& attachment) {
    return {attachment.vf, attachment.holder->name, attachment.holder->uid};
}

// Nodes that were never given away are root's, as the kernel makes them.
DetachExternal detach_external(Attachment const& attachment) {
    DetachExternal step{attachment.vf, attachment.holder->name};
    if (attachment.holder->uid) step.owner = attachment.node_owner.value_or(0);
    return step;
}

bool lacks_its_nodes(Attachment const& attachment, VfState const& vf) {
    return attachment.holder && attachment.holder->uid && vf.vfio && vf.holders.empty() &&
           vf.vfio->owner != *attachment.holder->uid;
}

Attachment with_access(Attachment attachment, HostView const& host) {
    if (!attachment.holder) return attachment;
    HolderAccess access;
    if (auto const* const vf = find_vf(host, attachment.vf); vf && vf->vfio) {
        access.group = vf->vfio->group;
        access.device = vf->vfio->device;
    }
    access.qemu = fmt::format("-device vfio-pci,host={}", to_string(attachment.vf_pci));
    attachment.access = std::move(access);
    return attachment;
}

}  // namespace vfmgr
