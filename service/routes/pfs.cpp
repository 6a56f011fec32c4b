// SPDX-License-Identifier: Apache-2.0
// PFs, their specs, their VFs.
#include <fmt/format.h>

#include <algorithm>
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

// Adds a VF's attachment and quarantine to its state.
nlohmann::json vf_json(DesiredState const& desired, Attachments const& attachments,
                       PciAddress const& pf, VfState const& vf) {
    nlohmann::json out = vf;
    auto const attachment = attachments.find(VfId{pf, vf.index});
    bool const attached = attachment != attachments.end();
    out["attachment"] = attached ? nlohmann::json(attachment->second->id) : nullptr;
    out["vm"] = attached ? nlohmann::json(attachment->second->vm) : nullptr;
    auto const quarantine = desired.quarantine.find(VfId{pf, vf.index});
    out["quarantine"] = nullptr;
    if (quarantine != desired.quarantine.end())
        out["quarantine"] = {{"reason", quarantine->second.reason},
                             {"residue", quarantine->second.residue},
                             {"vm", quarantine->second.attachment.vm},
                             {"since", to_rfc3339(quarantine->second.since)}};
    return out;
}

nlohmann::json vfs_json(DesiredState const& desired, Attachments const& attachments,
                        PfState const& pf) {
    auto vfs = nlohmann::json::array();
    for (auto const& vf : pf.vfs) vfs.push_back(vf_json(desired, attachments, pf.info.pci, vf));
    return vfs;
}

nlohmann::json standing_json(Snapshot const& now, PciAddress const& pf) {
    auto const standing = standing_of(now.host->kernel, *now.desired, pf);
    nlohmann::json out{{"is", enum_name(standing.is)}, {"detail", nullptr}, {"remedy", nullptr}};
    if (auto const trouble = standing_trouble(standing, pf)) {
        out["detail"] = trouble->detail;
        out["remedy"] = trouble->remedy;
    }
    return out;
}

nlohmann::json pf_json(Snapshot const& now, Attachments const& attachments, PfState const& pf) {
    auto const& desired = *now.desired;
    nlohmann::json out = pf;
    out["standing"] = standing_json(now, pf.info.pci);
    out["vfs"] = vfs_json(desired, attachments, pf);
    auto const managed = desired.pfs.find(pf.info.pci);
    out["spec"] = nullptr;
    out["revision"] = 0;
    if (managed != desired.pfs.end()) {
        out["spec"] = managed->second.spec;
        out["revision"] = managed->second.revision;
    }
    return out;
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

void list_pfs(Engine& engine, http::Respond const& respond) {
    auto const now = engine.snapshot();
    auto items = nlohmann::json::array();
    auto const attachments = attachments_of(*now.desired);
    auto pfs = now.host->kernel.pfs;
    for (auto const& pci : kept_pfs(*now.desired))
        if (!pfs.contains(pci)) pfs.emplace(pci, missing_pf(now, pci));
    for (auto const& [pci, pf] : pfs) items.push_back(pf_json(now, attachments, pf));
    respond(list_response(std::move(items)));
}

http::Response show_pf(Engine& engine, Call const& call) {
    auto const now = engine.snapshot();
    auto const pf = named_pf(call, now);
    if (!pf) return refusal(call, pf.error());
    return json_response(200, pf_json(now, attachments_of(*now.desired), *pf));
}

http::Response show_spec(Engine& engine, Call const& call) {
    auto const now = engine.snapshot();
    auto const pf = named_pf(call, now);
    if (!pf) return refusal(call, pf.error());
    auto const managed = now.desired->pfs.find(pf->info.pci);
    // An unmanaged PF is only observed.
    PfSpec const observed{PfMode::observe, {}, {}};
    bool const known = managed != now.desired->pfs.end();
    auto response = json_response(200, known ? managed->second.spec : observed);
    response.headers["ETag"] = fmt::format("\"{}\"", known ? managed->second.revision : 0);
    return response;
}

http::Response show_vf(Engine& engine, Call const& call) {
    auto const now = engine.snapshot();
    auto const pf = named_pf(call, now);
    if (!pf) return refusal(call, pf.error());
    auto const index = vf_index(call);
    if (!index) return refusal(call, index.error());
    for (auto const& vf : pf->vfs)
        if (vf.index == *index)
            return json_response(
                200, vf_json(*now.desired, attachments_of(*now.desired), pf->info.pci, vf));
    return refusal(
        call, Error{Problem::not_found, fmt::format("{} has no VF {}", pf->info.ifname, *index),
                    fmt::format("it has {} VFs: GET /v1/pfs/{}/vfs lists them", pf->info.num_vfs,
                                to_string(pf->info.pci))});
}

void replace_spec(Engine& engine, Call const& call, http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    auto spec = from_json_text<PfSpec>(call.request.body);
    if (!spec) return respond(refusal(call, spec.error()));
    submit(engine, call, ReplacePfSpec{*pci, std::move(*spec)}, std::move(respond),
           [&engine, call] { return show_spec(engine, call); });
}

void forget(Engine& engine, Call const& call, http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    submit(engine, call, ForgetPf{*pci}, std::move(respond),
           [&engine, call] { return show_spec(engine, call); });
}

// Runs a command on the PF in the path, after which there may be nothing left to show of it.
template <class Command>
void command_pf(Engine& engine, Call const& call, http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    submit(engine, call, Command{*pci}, std::move(respond),
           [&engine, call] { return show_pf(engine, call); });
}

struct RekeyRequest {
    PciAddress to;
};
template <class F, Of<RekeyRequest> V>
void fields(F& f, V& request) {
    f.value("to", request.to);
}

void rekey(Engine& engine, Call const& call, http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    auto const request = from_json_text<RekeyRequest>(call.request.body);
    if (!request) return respond(refusal(call, request.error()));
    submit(engine, call, RekeyPf{*pci, request->to}, std::move(respond),
           [&engine, call] { return show_pf(engine, call); });
}

void lift_quarantine(Engine& engine, Call const& call, http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    auto const index = vf_index(call);
    if (!index) return respond(refusal(call, index.error()));
    submit(engine, call, LiftQuarantine{VfId{*pci, *index}}, std::move(respond),
           [&engine, call] { return show_vf(engine, call); });
}

// A PF's own events are in the history of every VF; only events with a VF prove that it existed.
bool is_of_vf(HistoryEvent const& event) {
    return event.vf.has_value();
}
bool is_of_vf(Verification const&) {
    return true;
}

// Lists the store's records of a VF, including a VF that no longer exists: they outlive it.
template <class Read>
void list_of_vf(Engine& engine, Call const& call, std::string_view of_it, Read read,
                http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    auto const index = vf_index(call);
    if (!index) return respond(refusal(call, index.error()));
    answer_in_turn(engine, call, std::move(respond),
                   [&engine, call, of_it, read, vf = VfId{*pci, *index}](Control::State& state) {
                       auto const all = read(state.store, vf);
                       if (!all) return refusal(call, all.error());
                       bool const any =
                           std::ranges::any_of(*all, [](auto const& one) { return is_of_vf(one); });
                       if (!any && !find_vf(*engine.snapshot().host, vf))
                           return refusal(call, Error{Problem::not_found,
                                                      fmt::format("there is no VF {} and no {} it",
                                                                  to_string(vf), of_it),
                                                      "GET /v1/pfs lists those of this host"});
                       return list_response(*all);
                   });
}

http::Response list_vfs(Engine& engine, Call const& call) {
    auto const now = engine.snapshot();
    auto const pf = named_pf(call, now);
    if (!pf) return refusal(call, pf.error());
    return list_response(vfs_json(*now.desired, attachments_of(*now.desired), *pf));
}

}  // namespace

std::vector<Route> pf_routes(Engine& engine) {
    return {
        {"GET", "/v1/pfs", Role::viewer,
         [&engine](Call const&, http::Respond respond) { list_pfs(engine, respond); }},
        {"GET", "/v1/pfs/{pci}", Role::viewer,
         [&engine](Call const& call, http::Respond respond) { respond(show_pf(engine, call)); }},
        {"GET", "/v1/pfs/{pci}/spec", Role::viewer,
         [&engine](Call const& call, http::Respond respond) { respond(show_spec(engine, call)); }},
        {"PUT",
         "/v1/pfs/{pci}/spec",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             replace_spec(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"DELETE",
         "/v1/pfs/{pci}/spec",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             forget(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"POST",
         "/v1/pfs/{pci}/gone",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             command_pf<EndGonePf>(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"POST",
         "/v1/pfs/{pci}/confirm-gone",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             command_pf<ConfirmGonePf>(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"POST",
         "/v1/pfs/{pci}/rekey",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             rekey(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"GET", "/v1/pfs/{pci}/vfs", Role::viewer,
         [&engine](Call const& call, http::Respond respond) { respond(list_vfs(engine, call)); }},
        {"GET", "/v1/pfs/{pci}/vfs/{index}", Role::viewer,
         [&engine](Call const& call, http::Respond respond) { respond(show_vf(engine, call)); }},
        {"GET", "/v1/pfs/{pci}/vfs/{index}/verifications", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             list_of_vf(
                 engine, call, "run of",
                 [](Store& store, VfId const& vf) { return store.verifications(vf); },
                 std::move(respond));
         }},
        {"GET", "/v1/pfs/{pci}/vfs/{index}/history", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             list_of_vf(
                 engine, call, "history of",
                 [](Store& store, VfId const& vf) { return store.events(vf); }, std::move(respond));
         }},
        {"DELETE",
         "/v1/pfs/{pci}/vfs/{index}/quarantine",
         Role::admin,
         [&engine](Call const& call, http::Respond respond) {
             lift_quarantine(engine, call, std::move(respond));
         },
         {"dry_run"}},
    };
}

}  // namespace vfmgr
