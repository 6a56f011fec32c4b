// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/endings.hpp"

#include <algorithm>

#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/released.hpp"

namespace vfmgr {
std::set<std::string> Endings::of_unknown_vms(HostView const& host, DesiredState const& desired) {
    std::set<std::string> over;
    auto const now = seams().clock.steady_now();
    std::map<std::string, Deadline> unknown;
    for (auto const& [id, attachment] : desired.attachments) {
        auto const& uuid = attachment.vm_uuid;
        if (attachment.holder || find_vm(host, uuid)) continue;
        auto const known = unknown_until_.find(uuid);
        unknown[uuid] = known == unknown_until_.end() ? now + vm_unknown_max : known->second;
        if (unknown[uuid] <= now && is_released(host, attachment)) over.insert(id);
    }
    unknown_until_ = std::move(unknown);
    return over;
}

void Endings::end_unheld(Control::State& state, std::set<std::string> const& at_rest) {
    if (operations_.stopping()) return;
    auto const host = seams().control.snapshot().host;
    auto const ids = released(*host, state.desired());
    std::set<std::string> over(ids.begin(), ids.end());
    if (knows_vms(host->hypervisor)) over.merge(of_unknown_vms(*host, state.desired()));
    auto const now = seams().clock.steady_now();
    std::map<std::string, Deadline> begun;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> of_vms;
    for (auto const& id : over) {
        auto const& attachment = state.desired().attachments.at(id);
        auto const before = begun_.find(id);
        if (at_rest.contains(id) && (before == begun_.end() || before->second <= now))
            of_vms[{attachment.vm_uuid, attachment.vm}].push_back(id);
        else if (before != begun_.end())
            begun.insert(*before);
    }
    for (auto const& [vm, ids] : of_vms) {
        for (auto const& id : ids) begun[id] = now + end_again_after;
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
