// SPDX-License-Identifier: Apache-2.0
#include "service/routes/gate.hpp"

#include "api/http/uri.hpp"
#include "service/auth/origin.hpp"
#include "service/log.hpp"

namespace vfmgr {
namespace {

// For each address, uid or certificate without a role: failures to authenticate, and apart from
// them visits to what is open to anyone, so that a flood of either keeps nobody from the other.
// Beyond it, requests are counted, not logged.
constexpr RateLimit strangers{.burst = 60, .per_second = 1};
// For all failures to authenticate together: those that have an entry of their own in the audit.
// Beyond it, they are counted there.
constexpr RateLimit failures_noted{.burst = 60, .per_second = 0.1};

// A request's path may be as long as its header.
constexpr std::size_t action_bytes_logged = 256;

constexpr std::string_view operations = "/v1/operations/";

std::optional<std::string> header_of(http::Response const& response, char const* name) {
    auto const found = response.headers.find(name);
    if (found == response.headers.end()) return std::nullopt;
    return found->second;
}

// Where a request came from, whoever sent it.
std::string origin_of(http::Peer peer) {
    if (auto* const remote = std::get_if<http::TcpPeer>(&peer)) remote->certificate.reset();
    return stranger_name(peer);
}

AuditEntry entry_of(Call const& call, http::Response const& response, Time now) {
    auto const& request = call.request;
    AuditEntry entry{
        .at = now,
        .who = call.who.name,
        .request_id = request_id(call),
        .action = request.method + " " + http::format_target({request.path, request.query}),
        .subject = request.path,
        .outcome = std::to_string(response.status),
        .refused = response.status >= 400,
        .from = origin_of(request.peer),
        .plan_digest = header_of(response, "Plan-Digest")};
    auto const location = header_of(response, "Location");
    if (location && location->starts_with(operations))
        entry.operation = location->substr(operations.size());
    return entry;
}

void log_request(Severity severity, std::string_view message, AuditEntry const& entry) {
    log(severity, message,
        {{"who", entry.who},
         {"from", entry.from},
         {"action", entry.action.substr(0, action_bytes_logged)},
         {"status", entry.outcome},
         {"request_id", entry.request_id},
         {"plan_digest", entry.plan_digest.value_or("")},
         {"operation", entry.operation.value_or("")}});
}

// Requests beyond the rate are only counted.
bool is_too_often(http::Response const& response) {
    return response.status == 429;
}

}  // namespace

Gate api_gate(RulesInForce const& rules, Engine const& engine,
              std::shared_ptr<AuditTrail> const& trail, TokenUses& uses, Sessions const& sessions,
              Clock& clock) {
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
    gate.authenticate = [&rules, &engine, &uses, &sessions, &clock](http::Request const& request) {
        auto const published = engine.snapshot();
        auto const& tokens = published.tokens;
        auto const now = clock.now();
        auto who = authenticate(request.peer, request.headers, rules.get()->roles, *tokens, now,
                                published.desired->tenants, *sessions.get());
        if (who && !who->token_sha256.empty())
            uses.note(tokens->at(who->token_sha256), {now, stranger_name(request.peer)});
        return who;
    };
    gate.still_holds = [&rules, &engine, &sessions, &clock](Principal const& who,
                                                            http::Peer const& peer) {
        auto const published = engine.snapshot();
        return still_holds(who, peer, rules.get()->roles, *published.tokens, clock.now(),
                           published.desired->tenants, *sessions.get());
    };
    gate.refuse_other_sites = [&rules](http::Request const& request) {
        return refuse_other_sites(request, rules.get()->hosts);
    };
    gate.take_change = limiter([&rules] { return rules.get()->changes; });
    gate.take_failure = limiter([] { return strangers; });
    gate.take_visit = limiter([] { return strangers; });
    gate.answered = [trail, &clock](Call const& call, http::Response const& response) {
        auto entry = entry_of(call, response, clock.now());
        if (is_too_often(response)) return trail->count(entry);
        log_request(Severity::info, "request", entry);
        trail->add(std::move(entry));
    };
    gate.unknown = [trail, &clock, noted = limiter([] { return failures_noted; })](
                       Call const& call, http::Response const& response) {
        auto entry = entry_of(call, response, clock.now());
        if (is_too_often(response)) return trail->count(entry);
        log_request(Severity::warning, "authentication failed", entry);
        noted("").count() ? trail->count(entry) : trail->add(std::move(entry));
    };
    return gate;
}

}  // namespace vfmgr
