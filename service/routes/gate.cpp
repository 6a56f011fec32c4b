// SPDX-License-Identifier: Apache-2.0
#include "service/routes/gate.hpp"

#include "service/log.hpp"

namespace vfmgr {
namespace {

// For each address, uid or certificate without a role: failures to authenticate, and apart from
// them visits to what is open to anyone, so that a flood of either keeps nobody from the other.
// Beyond it, requests are counted, not logged.
constexpr RateLimit strangers{.burst = 60, .per_second = 1};

// A request's path may be as long as its header.
constexpr std::size_t action_bytes_logged = 256;

AuditEntry entry_of(Call const& call, http::Response const& response, Time now) {
    return {now,
            call.who.name,
            request_id(call),
            call.request.method + " " + call.request.path,
            call.request.path,
            std::to_string(response.status),
            response.status >= 400};
}

void log_request(Severity severity, std::string_view message, AuditEntry const& entry,
                 std::string operation = {}) {
    log(severity, message,
        {{"who", entry.who},
         {"action", entry.action.substr(0, action_bytes_logged)},
         {"status", entry.outcome},
         {"request_id", entry.request_id},
         {"operation", std::move(operation)}});
}

// Requests beyond the rate are only counted.
bool is_too_often(http::Response const& response) {
    return response.status == 429;
}

}  // namespace

Gate api_gate(RulesInForce const& rules, Engine const& engine,
              std::shared_ptr<AuditTrail> const& trail, TokenUses& uses, Clock& clock) {
    // Used on the io thread only.
    auto const limiter = [&clock](auto limit) {
        return [limiter = std::make_shared<RateLimiter<std::string>>(limit()), limit,
                &clock](std::string const& who) -> std::chrono::milliseconds {
            auto const now = clock.steady_now();
            limiter->limit(limit());
            return limiter->take(who, now) ? std::chrono::milliseconds(0) : limiter->hold(who, now);
        };
    };
    Gate gate;
    gate.authenticate = [&rules, &engine, &uses, &clock](http::Request const& request) {
        auto const tokens = engine.snapshot().tokens;
        auto const now = clock.now();
        auto who = authenticate(request.peer, request.headers, rules.get()->roles, *tokens, now);
        if (who && !who->token_sha256.empty())
            uses.note(tokens->at(who->token_sha256), {now, stranger_name(request.peer)});
        return who;
    };
    gate.still_holds = [&rules, &engine, &clock](Principal const& who, http::Peer const& peer) {
        return still_holds(who, peer, rules.get()->roles, *engine.snapshot().tokens, clock.now());
    };
    gate.take_change = limiter([&rules] { return rules.get()->changes; });
    gate.take_failure = limiter([] { return strangers; });
    gate.take_visit = limiter([] { return strangers; });
    gate.answered = [trail, &clock](Call const& call, http::Response const& response) {
        auto entry = entry_of(call, response, clock.now());
        if (is_too_often(response)) return trail->count(entry);
        auto const operation = response.headers.find("Location");
        log_request(Severity::info, "request", entry,
                    operation == response.headers.end() ? "" : operation->second);
        trail->add(std::move(entry));
    };
    gate.unknown = [trail, &clock](Call const& call, http::Response const& response) {
        auto const entry = entry_of(call, response, clock.now());
        trail->count(entry);
        if (!is_too_often(response)) log_request(Severity::warning, "authentication failed", entry);
    };
    return gate;
}

}  // namespace vfmgr
