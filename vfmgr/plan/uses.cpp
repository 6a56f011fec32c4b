// SPDX-License-Identifier: Apache-2.0
// Collects all uses of VFs, none of which is ever ignored: our attachments, libvirt's live and
// persistent XML of every domain, and processes that hold the VF's VFIO group. The kernel protects
// nothing (vfmgr/kernel/KERNEL.md#vfs-in-use).
#include <fmt/format.h>

#include <map>
#include <ranges>
#include <set>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

struct VmUse {
    VmInfo const* vm;
    bool live;
};

// Indexed by VF: each observation queries every VF of the host.
struct Users {
    std::multimap<VfId, Attachment const*> attachments;
    std::multimap<PciAddress, VmUse> vms;
};

Users users_of(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    Users users;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf) users.attachments.emplace(attachment.vf, &attachment);
    for (auto const& [uuid, vm] : host.hypervisor.vms) {
        for (auto const& hostdev : vm.live) users.vms.emplace(hostdev.pci, VmUse{&vm, true});
        for (auto const& hostdev : vm.config) users.vms.emplace(hostdev.pci, VmUse{&vm, false});
    }
    return users;
}

template <class Map>
auto found_in(Map const& map, typename Map::key_type const& key) {
    auto const [first, last] = map.equal_range(key);
    return std::ranges::subrange(first, last);
}

void uses_of(std::vector<VfUse>& uses, Users const& users, DesiredState const& desired,
             VfId const& id, VfState const& vf) {
    for (auto const& [_, attachment] : found_in(users.attachments, id))
        uses.push_back(
            {id, fmt::format("attached to {} (attachment {})", attachment->vm, attachment->id)});
    for (auto const& [_, use] : found_in(users.vms, vf.pci)) {
        if (use.live)
            uses.push_back({id, fmt::format("in the running VM {}", use.vm->name)});
        else
            uses.push_back({id,
                            fmt::format("in the persistent configuration of VM {}", use.vm->name),
                            use.vm->uuid});
    }
    for (auto const& holder : vf.holders)
        uses.push_back({id, fmt::format("held open by {} (pid {})", holder.comm, holder.pid)});
    if (auto it = desired.quarantine.find(id); it != desired.quarantine.end())
        uses.push_back({id, fmt::format("in quarantine: {}", it->second.reason)});
}

}  // namespace

std::vector<VfUse> vf_uses(HostView const& host, DesiredState const& desired,
                           PciAddress const& pf) {
    std::vector<VfUse> uses;
    auto const* state = find_pf(host, pf);
    if (!state) return uses;
    auto const users = users_of(host, desired, pf);
    for (auto const& vf : state->vfs) uses_of(uses, users, desired, VfId{pf, vf.index}, vf);
    return uses;
}

std::optional<BindVfs> bind_unused(HostView const& host, DesiredState const& desired,
                                   PfState const& pf, PfSpec const& spec) {
    if (!spec.vf_driver) return std::nullopt;
    std::set<std::uint16_t> used;
    for (auto const& use : vf_uses(host, desired, pf.info.pci)) used.insert(use.vf.index);
    BindVfs bind{pf.info.pci, {}, spec.vf_driver};
    for (auto const& vf : pf.vfs)
        if (vf.driver != spec.vf_driver && !used.contains(vf.index)) bind.vfs.push_back(vf.index);
    if (bind.vfs.empty()) return std::nullopt;
    return bind;
}

}  // namespace vfmgr
