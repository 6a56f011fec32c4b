// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/run.hpp"

#include <unistd.h>

#include "api/os/handle.hpp"
#include "service/attend.hpp"
#include "service/fleet/metrics.hpp"
#include "service/fleet/replica_calls.hpp"
#include "service/listen_locally.hpp"
#include "service/log.hpp"
#include "service/routes/turned_away.hpp"

namespace vfmgr::fleet {
namespace {

void log_bug(std::string const& what) {
    log(Severity::error, "a bug in vfmgr-fleetd", {{"detail", what}});
}

// Nobody signs in here: the consoles are the hosts' own.
Gate fleet_gate(RulesInForce const& rules, FleetSeams const& seams, AuditRing& audit,
                TokenUses& uses, FleetMetrics& metrics, Clock& clock) {
    static Sessions const none;
    auto gate = api_gate({rules, seams.access, audit.audit(), uses, none, clock, this_program()});
    if (seams.replicas) let_replicas_in(gate, *seams.replicas, seams.access, clock);
    gate.every = [&metrics](Endpoint const* endpoint, http::Request const& request,
                            http::Response const& response) {
        metrics.answered(endpoint, request.method, static_cast<unsigned>(response.status));
    };
    return gate;
}

Result<ServedAs> listen_for_api(Config const& config, http::Server& server,
                                http::Handler const& handler) {
    VFMGR_CHECK(listen_locally(config.unix_socket, server, handler));
    auto const where = tls_listen(config);
    VFMGR_TRY(auto served, served_as(where, config.tls, names_of(config)));
    VFMGR_CHECK(server.listen(where, handler));
    log(Severity::notice, "listening with TLS",
        {{"address", where.address},
         {"port", std::to_string(where.port)},
         {"fingerprint", served.fingerprint}});
    return served;
}

ResolvedAccess access_at_start(Config const& config) {
    auto access = resolve_access(config);
    for (auto const& group : access.unknown_groups)
        log(Severity::warning, "this host has no such group, so no user gets its role",
            {{"group", group}});
    return access;
}

void save_uses(FleetSeams const& seams, TokenUses& uses, Time now) {
    if (auto const unwritten = uses.take_unwritten(now); !unwritten.empty())
        seams.save_token_uses(unwritten);
}

void stop(http::Server& server, Workers& workers, Clock& clock) {
    server.finish(last_answers_time);
    if (workers.stop(clock.steady_now() + stop_patience)) return;
    log(Severity::notice, "work for requests does not end, and is left");
    ::_exit(0);
}

}  // namespace

Result<void> run(Config const& config, LoadConfig const& load, Begin const& begin, Clock& clock) {
    TokenUses uses;
    FleetMetrics metrics;
    AuditRing audit;
    auto access = access_at_start(config);
    RulesInForce rules(access.rules);
    Workers workers(config.workers, log_bug);
    http::Server server(config.limits, [](std::string const& what) {
        log(Severity::error, "an exception ended a connection", {{"detail", what}});
    });
    server.on_turned_away(report_turned_away(audit.audit(), clock));
    // Posted, since who calls it may outlive the server.
    auto const cut = [post = server.io_post(), &server] {
        post([&server] { server.cut(http::lapsed); });
    };
    VFMGR_TRY(auto const seams, begin({workers, server.io_post(), cut}));
    auto const answer = fleet_handler(all_routes({workers, audit, metrics}, seams),
                                      fleet_gate(rules, seams, audit, uses, metrics, clock));
    VFMGR_TRY(auto served, listen_for_api(config, server, answer));
    access.rules.hosts = std::move(served.hosts);
    rules.set(std::move(access.rules));
    Reload reload(load, rules, server);
    reload.begin(config, std::move(access.unknown_groups), std::move(served.fingerprint));
    server.start();
    // Only an io thread that makes progress feeds the watchdog.
    auto const due = [&, post = server.io_post()] {
        post(feed_watchdog);
        save_uses(seams, uses, clock.now());
        // Tokens and certificates end while their connections are open.
        server.cut(http::lapsed);
    };
    serve_until_signal({[&reload] { reload.run(); }, due,
                        [&reload, &clock] { reload.look_after_certificate(clock.now()); }, clock},
                       VFMGR_VERSION);
    stop(server, workers, clock);
    save_uses(seams, uses, Time::max());
    return {};
}

}  // namespace vfmgr::fleet
