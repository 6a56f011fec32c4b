// SPDX-License-Identifier: Apache-2.0
#include "service/routes/vf_views.hpp"

#include <algorithm>
#include <set>

#include "vfmgr/plan/drift.hpp"
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
}

std::vector<VfView> VfViews::without_drift(PfState const& pf) const {
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
    return views;
}

std::vector<VfView> VfViews::of(PfState const& pf) const {
    PfView view;
    fill(view, pf);
    return std::move(view.vfs);
}

void VfViews::fill(PfView& view, PfState const& pf) const {
    view.vfs = without_drift(pf);
    for (auto const& drift : find_drift_of(pf.info.pci, *host_, *desired_)) {
        auto const vf = std::ranges::find(view.vfs, drift.vf, index_of);
        (vf == view.vfs.end() ? view.drift : vf->drift).push_back(drift.sentence);
    }
}

}  // namespace vfmgr
