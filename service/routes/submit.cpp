// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/routes/conditions.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

// Two requests with one Idempotency-Key are the same if their hashes are equal. The query counts:
// ?force=true makes another request.
std::string hash_of(http::Request const& request) {
    // Sorted, and each with its length: no two queries give the same text.
    std::string text = request.method + " " + request.path + "\n";
    for (auto const& [name, value] : request.query)
        text += fmt::format("{}:{}={}:{}\n", name.size(), name, value.size(), value);
    text += "\n" + request.body;
    return verify::digest_hex(text);
}

// SHA-256 of the plan's JSON without blanks, members by name: of `plan` as a dry run shows it.
std::string digest_of(Plan const& plan) {
    auto const text = to_json_text(plan);
    return verify::digest_hex(text);
}

Result<Intent> intent_of(Call const& call) {
    Intent intent;
    intent.requested_by = call.who.name;
    intent.request_id = request_id(call);
    if (call.who.tenant) intent.tenant = call.who.tenant->tenant.name;
    intent.fence = call.fence;
    VFMGR_TRY(intent.dry_run, is_true(call, "dry_run"));
    VFMGR_TRY(intent.if_match, if_match(call));
    auto const key = call.request.headers.find("idempotency-key");
    if (key == call.request.headers.end()) return intent;
    if (key->second.empty() || key->second.size() > 255)
        return fail(Problem::invalid_request, "an Idempotency-Key has 1 to 255 characters",
                    "send a UUID");
    // Two callers may choose the same key independently.
    intent.idempotency_key = call.who.name + " " + key->second;
    intent.request_hash = hash_of(call.request);
    return intent;
}

// A plan to replace a spec is valid for one revision of it, which the ETag names.
Result<http::Response> answered(Call const& call, Change const& change, Answer const& answer,
                                Snapshot const& now) {
    if (answer.operation) {
        auto response = json_response(202, *answer.operation);
        response.headers["Location"] = "/v1/operations/" + answer.operation->id;
        response.headers["Retry-After"] = "1";
        if (answer.plan) response.headers["Plan-Digest"] = digest_of(*answer.plan);
        return response;
    }
    if (!answer.plan) return change.nothing(call, now);
    nlohmann::json body{{"plan", *answer.plan}};
    if (answer.attachment) body["attachment"] = *answer.attachment;
    if (!answer.attachments.empty()) body["attachments"] = answer.attachments;
    bool const whole = std::holds_alternative<ReplaceDesired>(change.command);
    if (whole) body["changes"] = answer.changes;
    auto response = json_response(200, body);
    response.headers["Plan-Digest"] = digest_of(*answer.plan);
    bool const replaces = whole || std::holds_alternative<ReplacePfSpec>(change.command) ||
                          std::holds_alternative<ChangeAttachment>(change.command) ||
                          std::holds_alternative<PutNetwork>(change.command) ||
                          std::holds_alternative<PutPool>(change.command) ||
                          std::holds_alternative<PutTenant>(change.command) ||
                          std::holds_alternative<PutIdentities>(change.command) ||
                          std::holds_alternative<AddLink>(change.command);
    return replaces ? with_etag(std::move(response), answer.revision) : response;
}

// What a handler may answer from.
Snapshot published(Engine const& engine, Call const& call) {
    auto now = engine.snapshot();
    return call.who.tenant ? seen_by(call.who.tenant->tenant, now) : now;
}

using Answered = std::function<void(Result<http::Response>)>;

void submit(Engine& engine, Call const& call, Change const& change, Answered const& answer) {
    auto intent = intent_of(call);
    if (!intent) return answer(fail(intent.error()));
    engine.submit(change.command, std::move(*intent),
                  [&engine, call, change, answer](Result<Answer> const& admitted) {
                      if (!admitted) return answer(fail(admitted.error()));
                      answer(answered(call, change, *admitted, published(engine, call)));
                  });
}

}  // namespace

Client client_of(Call const& call) {
    auto const& presence = call.request.presence;
    if (!presence) return {call.who.name, {}};
    return {call.who.name, {presence, &presence->gone}};
}

void handle(Engine& engine, Route const& route, Call const& call, http::Respond respond) {
    Answered const answer = [call, respond](Result<http::Response> response) {
        respond(response ? std::move(*response) : refusal(call, response.error()));
    };
    if (auto const* const ask = std::get_if<Ask>(&route.handle)) {
        auto const query = (*ask)(call, published(engine, call));
        if (!query) return answer(fail(query.error()));
        return query->ask(client_of(call), [call, answer](Result<http::Response> response) {
            answer(response ? unless_known(call, std::move(*response)) : std::move(response));
        });
    }
    if (auto const* const read = std::get_if<Published>(&route.handle)) {
        auto response = read->answer(call, published(engine, call));
        if (!response) return answer(fail(response.error()));
        return answer(unless_known(call, std::move(*response)));
    }
    auto const change = std::get<Write>(route.handle)(call);
    if (!change) return answer(fail(change.error()));
    change->ask(client_of(call), [&engine, call, answer](Result<Change> const& parsed) {
        if (!parsed) return answer(fail(parsed.error()));
        submit(engine, call, *parsed, answer);
    });
}

}  // namespace vfmgr
