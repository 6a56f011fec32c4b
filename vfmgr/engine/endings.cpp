// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/endings.hpp"

#include <algorithm>

#include "vfmgr/engine/declarations.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/links.hpp"

namespace vfmgr {
namespace {

// A source that can't be read means in use.
bool is_released(HostView const& host, Attachment const& attachment) {
    auto const* const vf = find_vf(host, attachment.vf);
    if (vf && !vf->holders.empty()) return false;
    auto const* const vm = find_vm(host, attachment.vm_uuid);
    return !vm || !has_hostdev(vm->live, hostdev_alias(attachment.id), attachment.vf_pci);
}

bool knows_vms(HypervisorView const& view) {
    return !view.stale && view.observed_at != Time{};
}

}  // namespace

void Endings::end_unheld(Control::State& state, std::set<std::string> const& at_rest) {
    auto const host = seams().control.snapshot().host;
    if (operations_.stopping() || !knows_vms(host->hypervisor)) return;
    auto const now = seams().clock.steady_now();
    std::map<std::string, Deadline> unknown;
    std::map<std::string, std::vector<std::string>> ended;  // by the VM's UUID
    std::set<std::string> begun;
    for (auto const& [id, attachment] : state.desired().attachments) {
        auto const& uuid = attachment.vm_uuid;
        bool over = attachment.state == AttachmentState::detaching || is_declared(attachment);
        if (!find_vm(*host, uuid)) {
            auto const known = unknown_until_.find(uuid);
            unknown[uuid] = known == unknown_until_.end() ? now + vm_unknown_max : known->second;
            over = over || unknown[uuid] <= now;
        }
        if (!over || !is_released(*host, attachment)) continue;
        if (begun_.contains(id))
            begun.insert(id);
        else if (at_rest.contains(id))
            ended[uuid].push_back(id);
    }
    for (auto& [uuid, ids] : ended) {
        begun.insert(ids.begin(), ids.end());
        submit_(Detach{ids}, [this, ids](Result<Answer> const& answer) {
            if (answer) return;
            seams().control.post([this, ids](Control::State&) {
                for (auto const& id : ids) begun_.erase(id);
            });
        });
    }
    begun_ = std::move(begun);
    unknown_until_ = std::move(unknown);
}

}  // namespace vfmgr
