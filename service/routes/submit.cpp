// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

// Two requests with one Idempotency-Key are the same if their hashes are equal. The query counts:
// ?force=true makes another request.
std::string hash_of(http::Request const& request) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    // Sorted, and each with its length: no two queries give the same text.
    std::string text = request.method + " " + request.path + "\n";
    for (auto const& [name, value] : request.query)
        text += fmt::format("{}:{}={}:{}\n", name.size(), name, value.size(), value);
    text += "\n" + request.body;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
        return {};
    std::string hex;
    for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

Result<Intent> intent_of(Call const& call) {
    Intent intent;
    intent.requested_by = call.who.name;
    intent.request_id = request_id(call);
    VFMGR_TRY(intent.dry_run, is_dry_run(call));
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

// Answers for a spec that `replaces` another: its plan is for the revision in the ETag.
http::Response answered(Answer const& answer, bool replaces,
                        std::function<http::Response()> const& nothing) {
    if (answer.operation) {
        auto response = json_response(202, *answer.operation);
        response.headers["Location"] = "/v1/operations/" + answer.operation->id;
        response.headers["Retry-After"] = "1";
        return response;
    }
    if (!answer.plan) return nothing();
    nlohmann::json body{{"plan", *answer.plan}};
    if (answer.attachment) body["attachment"] = *answer.attachment;
    auto response = json_response(200, body);
    if (replaces) response.headers["ETag"] = fmt::format("\"{}\"", answer.revision);
    return response;
}

}  // namespace

void answer_in_turn(Engine& engine, Call const& call, http::Respond respond,
                    std::function<http::Response(Control::State&)> work) {
    // Stays empty if `work` throws; dropping `respond` then answers 500.
    auto const response = std::make_shared<std::optional<http::Response>>();
    auto const taken = engine.control().offer(
        call.who.name,
        [response, work = std::move(work)](Control::State& state) { *response = work(state); },
        [response, respond] {
            if (*response) respond(std::move(**response));
        });
    if (!taken) respond(refusal(call, taken.error()));
}

void submit(Engine& engine, Call const& call, Command command, http::Respond respond,
            std::function<http::Response()> nothing) {
    auto intent = intent_of(call);
    if (!intent) return respond(refusal(call, intent.error()));
    bool const replaces =
        std::holds_alternative<ReplacePfSpec>(command) || std::holds_alternative<AddLink>(command);
    engine.submit(
        std::move(command), std::move(*intent),
        [call, respond, replaces, nothing = std::move(nothing)](Result<Answer> const& answer) {
            respond(answer ? answered(*answer, replaces, nothing) : refusal(call, answer.error()));
        });
}

}  // namespace vfmgr
