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

// With the replica that passed it on, of a client of the fleet.
std::string origin_of(Call const& call) {
    auto from = vfmgr::origin_of(call.request.peer);
    auto const& who = call.who;
    if (who.fleet_replica && !is_replica_itself(who)) from += " fleet:" + *who.fleet_replica;
    return from;
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
        .from = origin_of(call),
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

// Returns zero, or how long to hold back the refusal. Used on the io thread only.
Gate::Take limiter(Clock& clock, std::function<RateLimit()> limit) {
    return [limiter = std::make_shared<RateLimiter<std::string>>(limit()), limit = std::move(limit),
            &clock](std::string const& who) -> std::chrono::milliseconds {
        auto const now = clock.steady_now();
        limiter->limit(limit());
        return limiter->take(who, now) ? std::chrono::milliseconds(0) : limiter->hold(who, now);
    };
}

// Null: this program is in no fleet.
std::shared_ptr<FleetTrust const> trust_of(GateSeams const& seams) {
    return seams.fleet ? seams.fleet() : nullptr;
}

void authenticate_callers(Gate& gate, GateSeams const& seams) {
    gate.authenticate = [seams](http::Request const& request) {
        auto const [tokens, tenants] = seams.access();
        auto const now = seams.clock.now();
        auto who = authenticate(request.peer, request.headers, seams.rules.get()->roles, *tokens,
                                now, *tenants, *seams.sessions.get(), trust_of(seams).get());
        if (who && who->fleet_replica) seams.fleet_is_here(now);
        if (who && !who->token_sha256.empty())
            seams.uses.note(tokens->at(who->token_sha256), {now, stranger_name(request.peer)});
        return who;
    };
    gate.still_holds = [seams](Principal const& who, http::Peer const& peer) {
        auto const [tokens, tenants] = seams.access();
        return still_holds(who, peer, seams.rules.get()->roles, *tokens, seams.clock.now(),
                           *tenants, *seams.sessions.get(), trust_of(seams).get());
    };
    if (seams.fleet)
        gate.speak_for = [seams](Principal const& who, http::Request const& request) {
            return fleet_call(who, request.headers, *seams.access().tenants);
        };
    gate.refuse_other_sites = [seams](http::Request const& request) {
        return refuse_other_sites(request, seams.rules.get()->hosts, seams.program);
    };
}

}  // namespace

std::string origin_of(http::Peer peer) {
    if (auto* const remote = std::get_if<http::TcpPeer>(&peer)) remote->certificate.reset();
    return stranger_name(peer);
}

Gate api_gate(GateSeams const& seams) {
    auto& clock = seams.clock;
    Gate gate;
    gate.program = seams.program;
    authenticate_callers(gate, seams);
    gate.take_change =
        [own = limiter(clock, [&rules = seams.rules] { return rules.get()->changes; }),
         fleets = limiter(clock, [&rules = seams.rules] { return rules.get()->fleet_changes; })](
            Principal const& who) {
            return is_replica_itself(who) ? fleets(who.name) : own(who.name);
        };
    gate.take_failure = limiter(clock, [] { return strangers; });
    gate.take_visit = limiter(clock, [] { return strangers; });
    gate.answered = [audit = seams.audit, &clock](Call const& call,
                                                  http::Response const& response) {
        auto entry = entry_of(call, response, clock.now());
        if (is_too_often(response)) return audit.count(entry);
        log_request(Severity::info, "request", entry);
        audit.add(std::move(entry));
    };
    gate.unknown = [audit = seams.audit, &clock,
                    noted = limiter(clock, [] { return failures_noted; })](
                       Call const& call, http::Response const& response) {
        auto entry = entry_of(call, response, clock.now());
        if (is_too_often(response)) return audit.count(entry);
        log_request(Severity::warning, "authentication failed", entry);
        noted("").count() ? audit.count(entry) : audit.add(std::move(entry));
    };
    return gate;
}

}  // namespace vfmgr
