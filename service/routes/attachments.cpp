// SPDX-License-Identifier: Apache-2.0
// Attachments and their verifications.
#include <fmt/format.h>

#include <functional>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page.hpp"
#include "vfmgr/engine/revision.hpp"

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
            return passes(entry.second) ? std::optional(entry.second) : std::nullopt;
        });
}

Result<http::Response> show_attachment(Call const& call, Snapshot const& now) {
    auto const attachment = now.desired->attachments.find(call.ids.at("id"));
    if (attachment == now.desired->attachments.end()) return fail(no_attachment(call.ids.at("id")));
    // A tenant's snapshot has its view already.
    return with_etag(json_response(200, attachment->second), revision_of(attachment->second, {}));
}

// These commands always begin an operation.
Change always(Command command) {
    return {std::move(command),
            [](Call const&, Snapshot const&) { return json_response(200, nullptr); }};
}

Result<Change> attach(Call const& call) {
    VFMGR_TRY(auto spec, from_json_text<AttachmentSpec>(call.request.body));
    return always(Attach{std::move(spec)});
}

Result<Change> change_attachment(Call const& call) {
    VFMGR_TRY(auto patch, from_json_text<AttachmentPatch>(call.request.body));
    return Change{ChangeAttachment{call.ids.at("id"), std::move(patch)}, show_attachment};
}

Change detach(Call const& call) {
    return always(Detach{call.ids.at("id")});
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
