// SPDX-License-Identifier: Apache-2.0
// Attachments and their verifications.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ranges>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/auth/token_rules.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page_of_rows.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/plan/external.hpp"

namespace vfmgr {
namespace {

// The body of a re-verification; every member is optional.
struct VerifyRequest {
    std::uint32_t timeout_seconds = 120;
    Profile profile = Profile::default_;
    std::optional<ResponderTarget> responder;
};
template <class F, Of<VerifyRequest> V>
void fields(F& f, V& request) {
    f.defaulted("timeout_seconds", request.timeout_seconds);
    f.defaulted("profile", request.profile);
    f.maybe("responder", request.responder);
}
void check(JsonReader& reader, VerifyRequest const& request) {
    if (request.timeout_seconds < 5 || request.timeout_seconds > 3600)
        reader.complain("timeout_seconds", "must be from 5 to 3600");
}

Error no_attachment(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no attachment {}", id),
            "GET /v1/attachments lists those of this host"};
}

Result<http::Response> list_attachments(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const pf, pf_filter(call));
    VFMGR_TRY(auto const vm, text_filter(call, "vm"));
    VFMGR_TRY(auto const network, text_filter(call, "network"));
    VFMGR_TRY(auto const pool, text_filter(call, "pool"));
    VFMGR_TRY(auto const reservation, text_filter(call, "reservation"));
    VFMGR_TRY(auto const state, choice_filter<AttachmentState>(call, "state"));
    auto const passes = [&](Attachment const& one) {
        return (!pf || *pf == one.vf.pf) && (vm.empty() || vm == one.vm || vm == one.vm_uuid) &&
               (network.empty() || network == one.spec.network) &&
               (pool.empty() || pool == one.spec.pool) &&
               (reservation.empty() || reservation == one.spec.reservation) &&
               (!state || *state == one.state);
    };
    return page_of_all(
        call, now.desired->attachments, [](auto const& entry) { return entry.first; },
        [&](auto const& entry) {
            return passes(entry.second) ? std::optional(with_access(entry.second, *now.host))
                                        : std::nullopt;
        });
}

Result<http::Response> show_attachment(Call const& call, Snapshot const& now) {
    auto const attachment = now.desired->attachments.find(call.ids.at("id"));
    if (attachment == now.desired->attachments.end()) return fail(no_attachment(call.ids.at("id")));
    // A tenant's snapshot has its view already.
    return with_etag(json_response(200, with_access(attachment->second, *now.host)),
                     revision_of(attachment->second, {}));
}

// These commands always begin an operation.
Change always(Command command) {
    return {std::move(command),
            [](Call const&, Snapshot const&) { return json_response(200, nullptr); }};
}

// What becomes an attachment as it is: a <hostdev> of the VM, by its address on the host.
struct AdoptBody {
    AttachmentSpec spec;
};
template <class F, Of<AdoptBody> V>
void fields(F& f, V& body) {
    PciAddress pci;
    f.value("pci", pci);
    body.spec.adopt = pci;
    f.maybe("network", body.spec.network);
    f.maybe("address", body.spec.address);
    f.maybe("verify", body.spec.verify);
    f.defaulted("verify_timeout_seconds", body.spec.verify_timeout_seconds);
    f.maybe("verify_profile", body.spec.verify_profile);
    f.defaulted("verify_every_seconds", body.spec.verify_every_seconds);
}
void check(JsonReader& reader, AdoptBody const& body) {
    check_proof(reader, body.spec);
}

// One attachment's spec, or {"attachments": [SPEC, …]}.
struct AttachBody {
    std::vector<AttachmentSpec> specs;
};
template <class F, Of<AttachBody> V>
void fields(F& reader, V& body) {
    if (!reader.json().is_object() || !reader.json().contains("attachments"))
        return reader.members_of(body.specs.emplace_back());
    reader.value("attachments", body.specs);
    auto const count = body.specs.size();
    if (reader.clean() && (count == 0 || count > attachment_set_max))
        reader.complain("attachments", fmt::format("must have 1 to {}", attachment_set_max));
}

Result<Change> attach(Call const& call) {
    VFMGR_TRY(auto body, from_json_text<AttachBody>(call.request.body));
    for (auto const& spec : body.specs)
        if (spec.holder) VFMGR_CHECK(may_name_holders(call.who));
    return always(Attach{std::move(body.specs)});
}

Result<Change> adopt(Call const& call) {
    VFMGR_CHECK(may_adopt(call.who));
    VFMGR_TRY(auto body, from_json_text<AdoptBody>(call.request.body));
    body.spec.vm = call.ids.at("vm");
    return always(Attach{std::move(body.spec)});
}

Result<Change> change_attachment(Call const& call) {
    VFMGR_TRY(auto patch, from_json_text<AttachmentPatch>(call.request.body));
    return Change{ChangeAttachment{call.ids.at("id"), std::move(patch)}, show_attachment};
}

Change detach(Call const& call) {
    return always(Detach{call.ids.at("id")});
}

Result<Change> detach_several(Call const& call) {
    constexpr char const* example = "DELETE /v1/attachments?ids=3f9c2b1d,5a017c22";
    VFMGR_TRY(auto const given, text_filter(call, "ids"));
    std::vector<std::string> ids;
    for (auto const part : std::views::split(given, ',')) {
        std::string id(part.begin(), part.end());
        if (!is_attachment_id(id))
            return fail(Problem::invalid_request,
                        fmt::format("{} is no id of an attachment", quoted(id)), example);
        if (std::ranges::find(ids, id) == ids.end()) ids.push_back(std::move(id));
    }
    if (ids.empty())
        return fail(Problem::invalid_request, "ids is missing: which attachments are meant",
                    example);
    if (ids.size() > attachment_set_max)
        return fail(Problem::invalid_request,
                    fmt::format("{} attachments are more than {} in one request", ids.size(),
                                attachment_set_max),
                    "make several requests");
    return always(Detach{std::move(ids)});
}

Result<Change> prove(Call const& call) {
    auto const& body = call.request.body;
    VFMGR_TRY(auto request, from_json_text<VerifyRequest>(body.empty() ? "{}" : body));
    return always(Verify{call.ids.at("id"), request.timeout_seconds, request.profile,
                         std::move(request.responder)});
}

Result<Query<http::Response>> list_verifications(Engine& engine, Call const& call,
                                                 Snapshot const& now) {
    auto const& id = call.ids.at("id");
    VFMGR_TRY(auto const range, range_of(call));
    bool const goes_on = now.desired->attachments.contains(id);
    return engine.verifications(id, range, call.who.tenant)
        .then([call, id, goes_on, range](Rows<Verification> const& rows) -> Result<http::Response> {
            // The runs of an ended attachment are kept for a while.
            if (rows.items.empty() && !range.after && !goes_on) return fail(no_attachment(id));
            return page_response(call, rows.items, rows.next);
        });
}

// For an attachment that ended, however long ago.
Query<http::Response> show_certificate(Engine& engine, Call const& call, Snapshot const&) {
    return engine.certificate(call.ids.at("id"), call.who.tenant)
        .then([](Certificate const& certificate) -> Result<http::Response> {
            return json_response(200, certificate);
        });
}

}  // namespace

std::vector<Route> attachment_routes(Engine& engine) {
    auto const of = std::ref(engine);
    std::string const all = "/v1/attachments";
    std::string const one = all + "/{id}";
    return {
        {"GET", all, Role::viewer, Published{list_attachments},
         list_parameters({"vm", "pf", "network", "pool", "reservation", "state"}), for_tenants_too},
        {"POST", all, Role::operator_, attach, {"dry_run"}, for_tenants_too},
        {"POST", "/v1/vms/{vm}/adoptions", Role::operator_, adopt, {"dry_run"}},
        {"DELETE", all, Role::operator_, detach_several, {"dry_run", "ids"}, for_tenants_too},
        {"GET", one, Role::viewer, Published{show_attachment}, {}, for_tenants_too},
        {"PATCH", one, Role::operator_, change_attachment, {"dry_run"}, for_tenants_too},
        {"DELETE", one, Role::operator_, detach, {"dry_run"}, for_tenants_too},
        {"GET",
         one + "/certificate",
         Role::viewer,
         std::bind_front(show_certificate, of),
         {},
         for_tenants_too},
        {"GET", one + "/verifications", Role::viewer, std::bind_front(list_verifications, of),
         list_parameters(), for_tenants_too},
        {"POST", one + "/verifications", Role::operator_, prove, {"dry_run"}, for_tenants_too},
    };
}

}  // namespace vfmgr
