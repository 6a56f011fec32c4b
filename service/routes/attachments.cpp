// SPDX-License-Identifier: Apache-2.0
// Attachments and their verifications.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"

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

http::Response list_attachments(Engine& engine, Call const& call) {
    auto const now = engine.snapshot();
    auto const& query = call.request.query;
    std::optional<PciAddress> pf;
    if (auto const asked = query.find("pf"); asked != query.end()) {
        auto const parsed = PciAddress::parse(asked->second);
        if (!parsed) return refusal(call, parsed.error());
        pf = *parsed;
    }
    auto const vm = query.find("vm");
    auto const matches = [&](Attachment const& attachment) {
        bool const by_vm =
            vm == query.end() || vm->second == attachment.vm || vm->second == attachment.vm_uuid;
        return by_vm && (!pf || *pf == attachment.vf.pf);
    };
    auto items = nlohmann::json::array();
    for (auto const& [id, attachment] : now.desired->attachments)
        if (matches(attachment)) items.push_back(attachment);
    return list_response(std::move(items));
}

http::Response show_attachment(Engine& engine, Call const& call) {
    auto const now = engine.snapshot();
    auto const attachment = now.desired->attachments.find(call.ids.at("id"));
    if (attachment == now.desired->attachments.end())
        return refusal(call, no_attachment(call.ids.at("id")));
    return json_response(200, attachment->second);
}

void attach(Engine& engine, Call const& call, http::Respond respond) {
    auto spec = from_json_text<AttachmentSpec>(call.request.body);
    if (!spec) return respond(refusal(call, spec.error()));
    submit(engine, call, Attach{std::move(*spec)}, std::move(respond),
           [] { return json_response(200, nullptr); });
}

void detach(Engine& engine, Call const& call, http::Respond respond) {
    submit(engine, call, Detach{call.ids.at("id")}, std::move(respond),
           [] { return json_response(200, nullptr); });
}

void prove(Engine& engine, Call const& call, http::Respond respond) {
    auto const& body = call.request.body;
    auto request = from_json_text<VerifyRequest>(body.empty() ? "{}" : body);
    if (!request) return respond(refusal(call, request.error()));
    Verify command{call.ids.at("id"), request->timeout_seconds, request->profile,
                   std::move(request->responder)};
    submit(engine, call, std::move(command), std::move(respond),
           [] { return json_response(200, nullptr); });
}

void list_verifications(Engine& engine, Call const& call, http::Respond respond) {
    answer_in_turn(engine, call, std::move(respond), [call](Control::State& state) {
        auto const& id = call.ids.at("id");
        auto const all = state.store.verifications(id);
        if (!all) return refusal(call, all.error());
        // The runs of an ended attachment are kept for a while.
        if (all->empty() && !state.desired().attachments.contains(id))
            return refusal(call, no_attachment(id));
        return list_response(*all);
    });
}

// For an attachment that ended, however long ago.
void show_certificate(Engine& engine, Call const& call, http::Respond respond) {
    answer_in_turn(engine, call, std::move(respond), [call](Control::State& state) {
        auto const& id = call.ids.at("id");
        auto const events = state.store.events(id);
        if (!events) return refusal(call, events.error());
        auto const certificate = find_certificate(state.desired(), *events, id);
        return certificate ? json_response(200, *certificate) : refusal(call, certificate.error());
    });
}

}  // namespace

std::vector<Route> attachment_routes(Engine& engine) {
    return {
        {"GET",
         "/v1/attachments",
         Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             respond(list_attachments(engine, call));
         },
         {"vm", "pf"}},
        {"POST",
         "/v1/attachments",
         Role::operator_,
         [&engine](Call const& call, http::Respond respond) {
             attach(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"GET", "/v1/attachments/{id}", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             respond(show_attachment(engine, call));
         }},
        {"DELETE",
         "/v1/attachments/{id}",
         Role::operator_,
         [&engine](Call const& call, http::Respond respond) {
             detach(engine, call, std::move(respond));
         },
         {"dry_run"}},
        {"GET", "/v1/attachments/{id}/certificate", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             show_certificate(engine, call, std::move(respond));
         }},
        {"GET", "/v1/attachments/{id}/verifications", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             list_verifications(engine, call, std::move(respond));
         }},
        {"POST",
         "/v1/attachments/{id}/verifications",
         Role::operator_,
         [&engine](Call const& call, http::Respond respond) {
             prove(engine, call, std::move(respond));
         },
         {"dry_run"}},
    };
}

}  // namespace vfmgr
