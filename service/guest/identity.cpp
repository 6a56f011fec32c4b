// SPDX-License-Identifier: Apache-2.0
#include "service/guest/identity.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr {

Result<VmIdentity> identify_vm(KnownVms const& known, Hypervisor& hypervisor, std::uint32_t cid) {
    if (known.published.observed_at > known.changed_at) return vm_with_cid(known.published, cid);
    VFMGR_TRY(auto const now, hypervisor.observe(std::nullopt));
    return vm_with_cid(now, cid);
}

Result<void> confirm_vm(Hypervisor& hypervisor, VmIdentity const& vm, std::uint32_t cid) {
    VFMGR_TRY(auto const now, hypervisor.observe(vm.uuid));
    auto const* const life = find_life(now, vm);
    if (life && life->vsock_cid == cid) return {};
    return fail(Problem::not_found, fmt::format("VM {} has stopped", vm.name),
                "try again when it runs");
}

VmInfo const* find_life(HypervisorView const& view, VmIdentity const& vm) {
    auto const found = view.vms.find(vm.uuid);
    bool const same = found != view.vms.end() && found->second.start_id == vm.start_id;
    return same ? &found->second : nullptr;
}

std::vector<EndedLife> ended_lives(HypervisorView const& before, HypervisorView const& now) {
    std::vector<EndedLife> ended;
    if (now.stale) return ended;  // unknown
    for (auto const& [uuid, vm] : before.vms) {
        if (!vm.vsock_cid || !vm.start_id) continue;
        auto const* const life = find_life(now, {uuid, vm.name, *vm.start_id});
        if (!life || life->vsock_cid != vm.vsock_cid) ended.push_back({uuid, *vm.vsock_cid});
    }
    return ended;
}

std::vector<std::string> runs_of(std::vector<EndedLife> const& ended, Snapshot const& now,
                                 Time at) {
    std::vector<std::string> runs;
    for (auto const& [id, run] : *now.runs) {
        auto const attachment = now.desired->attachments.find(id);
        if (attachment == now.desired->attachments.end() || run.started_at >= at) continue;
        if (std::ranges::find(ended, attachment->second.vm_uuid, &EndedLife::uuid) != ended.end())
            runs.push_back(run.run);
    }
    return runs;
}

}  // namespace vfmgr
