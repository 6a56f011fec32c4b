// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/endings.hpp"

#include <algorithm>

#include "vfmgr/engine/declarations.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/external.hpp"

namespace vfmgr {
namespace {

// A source that can't be read means in use.
bool is_released_by_vm(HostView const& host, Attachment const& attachment) {
    auto const* const vf = find_vf(host, attachment.vf);
    if (vf && !vf->holders.empty()) return false;
    auto const* const vm = find_vm(host, attachment.vm_uuid);
    return !vm || !has_hostdev(vm->live, hostdev_alias(attachment.id), attachment.vf_pci);
}

bool knows_vms(HypervisorView const& view) {
    return !view.stale && view.observed_at != Time{};
}

}  // namespace

// Those that a VM of libvirt no longer holds.
std::vector<std::string> Endings::unheld_by_vms(HostView const& host, DesiredState const& desired) {
    std::vector<std::string> over;
    auto const now = seams().clock.steady_now();
    std::map<std::string, Deadline> unknown;
    for (auto const& [id, attachment] : desired.attachments) {
        if (attachment.holder) continue;
        bool ends = attachment.state == AttachmentState::detaching || is_declared(attachment);
        if (auto const& uuid = attachment.vm_uuid; !find_vm(host, uuid)) {
            auto const known = unknown_until_.find(uuid);
            unknown[uuid] = known == unknown_until_.end() ? now + vm_unknown_max : known->second;
            ends = ends || unknown[uuid] <= now;
        }
        if (ends && is_released_by_vm(host, attachment)) over.push_back(id);
    }
    unknown_until_ = std::move(unknown);
    return over;
}

void Endings::end_unheld(Control::State& state, std::set<std::string> const& at_rest) {
    if (operations_.stopping()) return;
    auto const host = seams().control.snapshot().host;
    auto over = released(*host, state.desired());
    if (knows_vms(host->hypervisor))
        std::ranges::move(unheld_by_vms(*host, state.desired()), std::back_inserter(over));
    std::set<std::string> begun;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> of_vms;
    for (auto const& id : over) {
        auto const& attachment = state.desired().attachments.at(id);
        if (begun_.contains(id))
            begun.insert(id);
        else if (at_rest.contains(id))
            of_vms[{attachment.vm_uuid, attachment.vm}].push_back(id);
    }
    for (auto const& [vm, ids] : of_vms) {
        begun.insert(ids.begin(), ids.end());
        submit_(Detach{ids}, [this, ids = ids](Result<Answer> const& answer) {
            if (answer) return;
            seams().control.post([this, ids](Control::State&) {
                for (auto const& id : ids) begun_.erase(id);
            });
        });
    }
    begun_ = std::move(begun);
}

}  // namespace vfmgr
