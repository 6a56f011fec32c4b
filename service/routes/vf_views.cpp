// SPDX-License-Identifier: Apache-2.0
#include "service/routes/vf_views.hpp"

#include <algorithm>
#include <set>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

std::optional<std::uint16_t> index_of(VfView const& view) {
    return view.vf.index;
}

}  // namespace

VfViews::VfViews(Snapshot const& now) : host_(now.host), desired_(now.desired) {
    for (auto const& [id, attachment] : desired_->attachments)
        attachments_[attachment.vf] = &attachment;
    for (auto& drift : find_drift(*host_, *desired_)) drift_[drift.pf].push_back(std::move(drift));
}

std::vector<VfView> VfViews::of(PfState const& pf) const {
    auto const& pci = pf.info.pci;
    // What can't be read is not free.
    auto const& vms = host_->hypervisor;
    bool const known = !pf.stale && !vms.stale && vms.observed_at != Time{};
    std::set<VfId> used;
    std::set<VfId> reserved;
    for (auto const& use : vf_uses(*host_, *desired_, pci))
        (use.reservation.empty() ? used : reserved).insert(use.vf);
    std::vector<VfView> views;
    for (auto const& vf : pf.vfs) {
        VfId const id{pci, vf.index};
        VfView view{vf, pci, VfStatus::in_use, {}, {}, {}, {}};
        if (known && !used.contains(id))
            view.state = reserved.contains(id) ? VfStatus::reserved : VfStatus::free;
        if (auto const found = attachments_.find(id); found != attachments_.end()) {
            view.state = VfStatus::attached;
            view.attachment = found->second->id;
            view.vm = found->second->vm;
        }
        if (auto const found = desired_->quarantine.find(id); found != desired_->quarantine.end()) {
            auto const& why = found->second;
            view.state = VfStatus::quarantined;
            view.quarantine = {why.reason, why.residue, why.attachment.vm, why.since};
        }
        views.push_back(std::move(view));
    }
    if (auto const found = drift_.find(pci); found != drift_.end())
        for (auto const& drift : found->second)
            if (auto const view = std::ranges::find(views, drift.vf, index_of); view != views.end())
                view->drift.push_back(drift.sentence);
    return views;
}

std::vector<std::string> VfViews::drift_of(PfState const& pf) const {
    std::vector<std::string> sentences;
    auto const found = drift_.find(pf.info.pci);
    if (found == drift_.end()) return sentences;
    for (auto const& drift : found->second)
        if (!drift.vf || std::ranges::find(pf.vfs, *drift.vf, &VfState::index) == pf.vfs.end())
            sentences.push_back(drift.sentence);
    return sentences;
}

}  // namespace vfmgr
