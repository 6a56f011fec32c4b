// SPDX-License-Identifier: Apache-2.0
// PFs, their specs, their VFs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page_of_rows.hpp"
#include "service/routes/vf_views.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

PfView view_of(Snapshot const& now, VfViews const& vfs, PfState pf) {
    auto const& desired = *now.desired;
    PfView view;
    vfs.fill(view, pf);
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

Result<http::Response> list_pfs(Call const& call, Snapshot const& now) {
    VfViews const vfs(now);
    auto pfs = now.host->kernel.pfs;
    for (auto const& pci : kept_pfs(*now.desired))
        if (!pfs.contains(pci)) pfs.emplace(pci, missing_pf(now, pci));
    return page_of_all(
        call, pfs, [](auto const& entry) { return entry.first; },
        [&](auto const& entry) { return std::optional(view_of(now, vfs, entry.second)); });
}

Result<http::Response> show_pf(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto pf, named_pf(call, now));
    return json_response(200, view_of(now, VfViews(now), std::move(pf)));
}

Result<http::Response> show_spec(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, named_pf(call, now));
    auto const managed = now.desired->pfs.find(pf.info.pci);
    // An unmanaged PF is only observed.
    if (managed == now.desired->pfs.end())
        return with_etag(json_response(200, PfSpec{PfMode::observe, {}}), 0);
    return with_etag(json_response(200, managed->second.spec), managed->second.revision);
}

// Filters by what `now` knows of the VF's attachment.
struct VfFilter {
    std::optional<PciAddress> pf;
    std::optional<VfStatus> state;
    std::string attachment;
    std::string vm;  // name or UUID
    std::string network;

    [[nodiscard]] bool passes(Snapshot const& now, VfView const& view) const {
        if (pf && *pf != view.pf) return false;
        if (state && *state != view.state) return false;
        if (attachment.empty() && vm.empty() && network.empty()) return true;
        if (!view.attachment) return false;
        auto const& of = now.desired->attachments.at(*view.attachment);
        return (attachment.empty() || attachment == of.id) &&
               (vm.empty() || vm == of.vm || vm == of.vm_uuid) &&
               (network.empty() || network == of.spec.network);
    }
};

Result<VfFilter> vf_filter(Call const& call) {
    VfFilter filter;
    VFMGR_TRY(filter.pf, pf_filter(call));
    VFMGR_TRY(filter.state, choice_filter<VfStatus>(call, "state"));
    VFMGR_TRY(filter.attachment, text_filter(call, "attachment"));
    VFMGR_TRY(filter.vm, text_filter(call, "vm"));
    VFMGR_TRY(filter.network, text_filter(call, "network"));
    return filter;
}

Result<http::Response> page_of_vfs(Call const& call, Snapshot const& now,
                                   std::vector<VfView> const& views) {
    VFMGR_TRY(auto const filter, vf_filter(call));
    return page_of_all(call, views, id_of, [&](VfView const& view) {
        return filter.passes(now, view) ? std::optional(view) : std::nullopt;
    });
}

Result<http::Response> list_vfs(Call const& call, Snapshot const& now) {
    VfViews const of(now);
    std::vector<VfView> all;
    for (auto const& [pci, pf] : now.host->kernel.pfs)
        std::ranges::move(of.of(pf), std::back_inserter(all));
    return page_of_vfs(call, now, all);
}

Result<http::Response> list_vfs_of_pf(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, named_pf(call, now));
    return page_of_vfs(call, now, VfViews(now).of(pf));
}

Result<http::Response> show_vf(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, named_pf(call, now));
    VFMGR_TRY(auto const index, vf_index(call));
    auto const& pci = pf.info.pci;
    auto const views = VfViews(now).of(pf);
    auto const view =
        std::ranges::find(views, index, [](VfView const& one) { return one.vf.index; });
    if (view == views.end())
        return fail(Problem::not_found, fmt::format("{} has no VF {}", pf.info.ifname, index),
                    fmt::format("it has {} VFs: GET /v1/pfs/{}/vfs lists them", pf.info.num_vfs,
                                to_string(pci)));
    return json_response(200, *view);
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

// Records of a VF outlive it.
Result<Query<http::Response>> list_vf_verifications(Engine& engine, Call const& call,
                                                    Snapshot const&) {
    VFMGR_TRY(auto const vf, vf_id(call));
    VFMGR_TRY(auto const attachment, text_filter(call, "attachment"));
    VFMGR_TRY(auto const range, range_of(call));
    return page_of_rows(call, engine.verifications(vf, attachment, range));
}

Result<Query<http::Response>> list_history(Engine& engine, Call const& call, Snapshot const&) {
    VFMGR_TRY(auto const vf, vf_id(call));
    VFMGR_TRY(auto const attachment, text_filter(call, "attachment"));
    VFMGR_TRY(auto const range, range_of(call));
    return page_of_rows(call, engine.events(vf, attachment, range));
}

}  // namespace

std::vector<Route> pf_routes(Engine& engine) {
    auto const of = std::ref(engine);
    std::string const pf = "/v1/pfs/{pci}";
    std::string const vf = pf + "/vfs/{index}";
    auto const of_vfs = list_parameters({"vm", "state", "network", "attachment"});
    auto const of_records = list_parameters({"attachment"});
    return {
        {"GET", "/v1/pfs", Role::viewer, Published{list_pfs}, list_parameters()},
        {"GET", pf, Role::viewer, Published{show_pf}},
        {"GET", pf + "/spec", Role::viewer, show_spec},
        {"PUT", pf + "/spec", Role::admin, replace_spec, {"dry_run"}},
        {"DELETE", pf + "/spec", Role::admin, forget, {"dry_run"}},
        {"POST", pf + "/gone", Role::admin, end_gone, {"dry_run"}},
        {"POST", pf + "/confirm-gone", Role::admin, confirm_gone, {"dry_run"}},
        {"POST", pf + "/rekey", Role::admin, rekey, {"dry_run"}},
        {"GET", "/v1/vfs", Role::viewer, Published{list_vfs},
         list_parameters({"pf", "vm", "state", "network", "attachment"}), for_tenants_too},
        {"GET", pf + "/vfs", Role::viewer, Published{list_vfs_of_pf}, of_vfs},
        {"GET", vf, Role::viewer, Published{show_vf}},
        {"GET", vf + "/verifications", Role::viewer, std::bind_front(list_vf_verifications, of),
         of_records},
        {"GET", vf + "/history", Role::viewer, std::bind_front(list_history, of), of_records},
        {"DELETE", vf + "/quarantine", Role::admin, lift_quarantine, {"dry_run"}},
    };
}

}  // namespace vfmgr
