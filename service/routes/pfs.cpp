// SPDX-License-Identifier: Apache-2.0
// PFs, their specs, their VFs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

using Attachments = std::map<VfId, Attachment const*>;

// Covers all VFs at once: a host may have a thousand, and as many attachments.
Attachments attachments_of(DesiredState const& desired) {
    Attachments attachments;
    for (auto const& [id, attachment] : desired.attachments)
        attachments[attachment.vf] = &attachment;
    return attachments;
}

VfView view_of(DesiredState const& desired, Attachments const& attachments, PciAddress const& pf,
               VfState const& vf) {
    VfId const id{pf, vf.index};
    VfView view{vf, {}, {}, {}};
    if (auto const attachment = attachments.find(id); attachment != attachments.end()) {
        view.attachment = attachment->second->id;
        view.vm = attachment->second->vm;
    }
    if (auto const found = desired.quarantine.find(id); found != desired.quarantine.end()) {
        auto const& why = found->second;
        view.quarantine = {why.reason, why.residue, why.attachment.vm, why.since};
    }
    return view;
}

std::vector<VfView> views_of_vfs(DesiredState const& desired, Attachments const& attachments,
                                 PfState const& pf) {
    std::vector<VfView> views;
    for (auto const& vf : pf.vfs) views.push_back(view_of(desired, attachments, pf.info.pci, vf));
    return views;
}

PfView view_of(Snapshot const& now, Attachments const& attachments, PfState pf) {
    auto const& desired = *now.desired;
    PfView view;
    view.vfs = views_of_vfs(desired, attachments, pf);
    pf.vfs.clear();
    auto const pci = pf.info.pci;
    view.pf = std::move(pf);
    auto const standing = standing_of(now.host->kernel, desired, pci);
    view.standing.is = standing.is;
    if (auto const trouble = standing_trouble(standing, pci)) {
        view.standing.detail = trouble->detail;
        view.standing.remedy = trouble->remedy;
    }
    if (auto const managed = desired.pfs.find(pci); managed != desired.pfs.end()) {
        view.spec = managed->second.spec;
        view.revision = managed->second.revision;
    }
    for (auto const& [name, each] : desired.networks)
        if (host_address_on(each.network, pci)) view.networks.push_back(name);
    return view;
}

Error no_pf(std::string const& pci) {
    return {Problem::not_found, fmt::format("there is no SR-IOV capable device at {}", pci),
            "GET /v1/pfs lists those of this host"};
}

// Describes a PF that the store knows, but that has no device at its address.
PfState missing_pf(Snapshot const& now, PciAddress const& pci) {
    PfState pf;
    pf.info.pci = pci;
    if (auto const known = now.desired->identities.find(pci);
        known != now.desired->identities.end())
        pf.info.identity = known->second;
    if (pf.info.identity.guid) pf.info.link_layer = LinkLayer::infiniband;
    pf.stale = true;
    pf.stale_reason = "there is no device at this address";
    pf.observed_at = now.host->hypervisor.observed_at;
    for (auto const& [other, observed] : now.host->kernel.pfs)
        pf.observed_at = std::max(pf.observed_at, observed.observed_at);
    return pf;
}

// Returns the PF named in the path, or the refusal.
Result<PfState> named_pf(Call const& call, Snapshot const& now) {
    VFMGR_TRY(PciAddress const pci, pf_id(call));
    if (auto const* pf = find_pf(*now.host, pci)) return *pf;
    auto const kept = kept_pfs(*now.desired);
    if (std::ranges::binary_search(kept, pci)) return missing_pf(now, pci);
    return fail(no_pf(to_string(pci)));
}

http::Response list_pfs(Call const&, Snapshot const& now) {
    auto const attachments = attachments_of(*now.desired);
    auto pfs = now.host->kernel.pfs;
    for (auto const& pci : kept_pfs(*now.desired))
        if (!pfs.contains(pci)) pfs.emplace(pci, missing_pf(now, pci));
    std::vector<PfView> views;
    for (auto& [pci, pf] : pfs) views.push_back(view_of(now, attachments, std::move(pf)));
    return list_response(views);
}

Result<http::Response> show_pf(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto pf, named_pf(call, now));
    return json_response(200, view_of(now, attachments_of(*now.desired), std::move(pf)));
}

Result<http::Response> show_spec(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, named_pf(call, now));
    auto const managed = now.desired->pfs.find(pf.info.pci);
    // An unmanaged PF is only observed.
    if (managed == now.desired->pfs.end())
        return with_etag(json_response(200, PfSpec{PfMode::observe, {}}), 0);
    return with_etag(json_response(200, managed->second.spec), managed->second.revision);
}

Result<http::Response> list_vfs(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, named_pf(call, now));
    return list_response(views_of_vfs(*now.desired, attachments_of(*now.desired), pf));
}

Result<http::Response> show_vf(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, named_pf(call, now));
    VFMGR_TRY(auto const index, vf_index(call));
    auto const& pci = pf.info.pci;
    auto const vf = std::ranges::find(pf.vfs, index, &VfState::index);
    if (vf == pf.vfs.end())
        return fail(Problem::not_found, fmt::format("{} has no VF {}", pf.info.ifname, index),
                    fmt::format("it has {} VFs: GET /v1/pfs/{}/vfs lists them", pf.info.num_vfs,
                                to_string(pci)));
    return json_response(200, view_of(*now.desired, attachments_of(*now.desired), pci, *vf));
}

Result<Change> replace_spec(Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    VFMGR_TRY(auto spec, from_json_text<PfSpec>(call.request.body));
    return Change{ReplacePfSpec{pci, std::move(spec)}, show_spec};
}

Result<Change> forget(Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    return Change{ForgetPf{pci}, show_spec};
}

// After these two there may be nothing left to show of the PF.
Result<Change> end_gone(Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    return Change{EndGonePf{pci}, show_pf};
}

Result<Change> confirm_gone(Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    return Change{ConfirmGonePf{pci}, show_pf};
}

Result<Change> rekey(Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    VFMGR_TRY(auto const request, from_json_text<RekeyRequest>(call.request.body));
    return Change{RekeyPf{pci, request.to}, show_pf};
}

Result<VfId> vf_id(Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    VFMGR_TRY(auto const index, vf_index(call));
    return VfId{pci, index};
}

Result<Change> lift_quarantine(Call const& call) {
    VFMGR_TRY(auto const vf, vf_id(call));
    return Change{LiftQuarantine{vf}, show_vf};
}

// Lists the store's records of a VF, including a VF that no longer exists: they outlive it.
// `proves` tells which of them prove that it existed.
template <class Record>
Query<http::Response> list_of_vf(Query<std::vector<Record>> const& query, Snapshot const& now,
                                 VfId const& vf, std::string_view of_it,
                                 bool (*proves)(Record const&)) {
    bool const exists = find_vf(*now.host, vf) != nullptr;
    return query.then(
        [vf, of_it, proves, exists](std::vector<Record> const& all) -> Result<http::Response> {
            if (!exists && std::ranges::none_of(all, proves))
                return fail(Problem::not_found,
                            fmt::format("there is no VF {} and no {} it", to_string(vf), of_it),
                            "GET /v1/pfs lists those of this host");
            return list_response(all);
        });
}

Result<Query<http::Response>> list_vf_verifications(Engine& engine, Call const& call,
                                                    Snapshot const& now) {
    VFMGR_TRY(auto const vf, vf_id(call));
    return list_of_vf<Verification>(engine.verifications(vf), now, vf, "run of",
                                    [](Verification const&) { return true; });
}

// A PF's own events are in the history of every VF; only events with a VF prove that it existed.
Result<Query<http::Response>> list_history(Engine& engine, Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const vf, vf_id(call));
    return list_of_vf<Event>(engine.events(vf), now, vf, "history of",
                             [](Event const& event) { return event.vf.has_value(); });
}

}  // namespace

std::vector<Route> pf_routes(Engine& engine) {
    auto const of = std::ref(engine);
    std::string const pf = "/v1/pfs/{pci}";
    std::string const vf = pf + "/vfs/{index}";
    return {
        {"GET", "/v1/pfs", Role::viewer, list_pfs},
        {"GET", pf, Role::viewer, show_pf},
        {"GET", pf + "/spec", Role::viewer, show_spec},
        {"PUT", pf + "/spec", Role::admin, replace_spec, {"dry_run"}},
        {"DELETE", pf + "/spec", Role::admin, forget, {"dry_run"}},
        {"POST", pf + "/gone", Role::admin, end_gone, {"dry_run"}},
        {"POST", pf + "/confirm-gone", Role::admin, confirm_gone, {"dry_run"}},
        {"POST", pf + "/rekey", Role::admin, rekey, {"dry_run"}},
        {"GET", pf + "/vfs", Role::viewer, list_vfs},
        {"GET", vf, Role::viewer, show_vf},
        {"GET", vf + "/verifications", Role::viewer, std::bind_front(list_vf_verifications, of)},
        {"GET", vf + "/history", Role::viewer, std::bind_front(list_history, of)},
        {"DELETE", vf + "/quarantine", Role::admin, lift_quarantine, {"dry_run"}},
    };
}

}  // namespace vfmgr
