// SPDX-License-Identifier: Apache-2.0
#include "service/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>

#include "api/os/handle.hpp"
#include "service/due.hpp"
#include "service/event_log.hpp"
#include "service/fleet_access.hpp"
#include "service/guest/identity.hpp"
#include "service/guest_answers.hpp"
#include "service/host_names.hpp"
#include "service/listen_locally.hpp"
#include "service/log.hpp"
#include "service/routes/api.hpp"
#include "service/routes/host_gate.hpp"
#include "service/routes/turned_away.hpp"
#include "service/server_certificate.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/engine/audit_trail.hpp"
#include "vfmgr/engine/restore.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"

namespace vfmgr {
namespace {

Result<std::unique_ptr<Control>> open_control(Config const& config, Clock const& clock) {
    std::error_code error;
    std::filesystem::create_directories(config.state_dir, error);
    if (error)
        return fail(Problem::unavailable,
                    fmt::format("{} can't be created: {}", config.state_dir, error.message()),
                    "set state_dir in vfmgr.toml to a writable folder");
    VFMGR_TRY(Store store, Store::open(store_file(config)));
    return Control::start(std::move(store), clock);
}

// libvirtd takes a second to describe a hundred VMs the first time. It does so while the store is
// read and the workers start; the first observation then finds what has not changed since. An error
// shows again there.
std::future<void> describe_early(Hypervisor& hypervisor) {
    return std::async(std::launch::async,
                      [&] { static_cast<void>(hypervisor.observe(std::nullopt).has_value()); });
}

// The objects that the routes answer from.
struct Answerers {
    Engine& engine;
    guestd::Link& guests;
    HostChecks& checks;
    FirmwareQuery& firmware;
    TrafficQuery& traffic;
    ConsoleQuery& console;
    TokenUses const& token_uses;
    Sessions& sessions;
    EventStreams const& events;
    Measured const& measured;
    FleetSeams const& fleet;
};

std::vector<Route> all_routes(Answerers const& answerers, Clock& clock) {
    auto& [engine, guests, checks, firmware, traffic, console, token_uses, sessions, events,
           measured, fleet] = answerers;
    std::vector<Route> all;
    for (auto& routes : {root_routes(),
                         document_routes(),
                         host_routes(checks, traffic),
                         pf_routes(engine),
                         firmware_routes(engine, firmware),
                         network_routes(),
                         pool_routes(),
                         tenant_routes(),
                         desired_routes(),
                         fleet_routes(fleet),
                         vm_routes(),
                         rdma_link_routes(engine),
                         attachment_routes(engine),
                         interop_routes(guests),
                         enrolment_routes({engine, guests, clock}),
                         operation_routes(engine),
                         event_routes(events),
                         audit_routes(engine),
                         session_routes({engine, clock, sessions}),
                         metrics_routes(measured)})
        all.insert(all.end(), routes.begin(), routes.end());
    for (auto& route : token_routes({engine, clock, token_uses, nouns_of(all)}))
        all.push_back(std::move(route));
    for (auto& route : console_routes(console)) all.push_back(std::move(route));
    return all;
}

// Empty without TLS.
Result<ServedAs> listen_for_api(Config const& config, std::vector<std::string> const& names,
                                http::Server& server, http::Handler const& handler,
                                FleetAccess& fleet, Clock const& clock) {
    VFMGR_CHECK(listen_locally(config.unix_socket, server, handler));
    if (!config.tls.enabled) return ServedAs{};
    VFMGR_TRY(auto const where, tls_files(config, names, DaemonIs::starting, clock.now()));
    VFMGR_TRY(ServedAs served, served_as(where, config.tls, names));
    VFMGR_CHECK(server.listen(fleet.files_to_serve(where, server), handler));
    log(Severity::notice, "listening with TLS",
        {{"address", where.address},
         {"port", std::to_string(where.port)},
         {"fingerprint", served.fingerprint}});
    return served;
}

// An address in a network of VMs comes and goes with it; and what listens there is the responder.
std::vector<std::string> names_of_host(Engine const& engine, std::string const& listens_at) {
    std::set<IpAddress> in_networks;
    auto const desired = engine.snapshot().desired;
    for (auto const& [name, each] : desired->networks)
        for (auto const& rail : each.network.pfs) in_networks.insert(rail.host_address);
    auto names = host_names(in_networks);
    auto const address = IpAddress::parse(listens_at);
    bool const everywhere =
        !address || to_string(*address) == "0.0.0.0" || to_string(*address) == "::";
    if (!everywhere && std::ranges::find(names, to_string(*address)) == names.end())
        names.push_back(to_string(*address));
    return names;
}

ResolvedAccess access_at_start(Config const& config) {
    auto access = resolve_access(config);
    for (auto const& group : access.unknown_groups)
        log(Severity::warning, "this host has no such group, so no user gets its role",
            {{"group", group}});
    return access;
}

ScheduleHooks schedule_hooks(guestd::Link const& guests) {
    ScheduleHooks hooks;
    hooks.guest_waits = [&guests](std::string const& guest) { return guests.guest_waits(guest); };
    hooks.report = [](ScheduledRun const& run) {
        using End = ScheduledRun::End;
        bool const bad = run.end == End::failed || run.end == End::warned;
        std::string_view const message = run.end == End::skipped  ? "scheduled verification skipped"
                                         : run.end == End::failed ? "scheduled verification failed"
                                         : run.end == End::warned
                                             ? "scheduled verification has a warning"
                                             : "scheduled verification passed";
        log(bad ? Severity::warning : Severity::info, message,
            {{"attachment", run.attachment},
             {"vm", run.vm},
             {"detail", run.detail},
             {"remedy", run.remedy}});
    };
    return hooks;
}

checks::DeviceSelector names_of(PfInfo const& pf) {
    checks::DeviceSelector names{{pf.ifname}, {}, {pf.driver}, {to_string(pf.pci)}, {}};
    if (pf.mac) names.macs = {to_string(*pf.mac)};
    if (pf.rdma_device) names.ibdevs = {*pf.rdma_device};
    return names;
}

auto other_owners(std::function<checks::Facts()> collect) {
    return [collect = std::move(collect)](std::vector<PfInfo> const& pfs) {
        auto const facts = collect();
        auto const machine = checks::read_machine(facts);
        OwnersOfPfs owners;
        for (auto const& pf : pfs) owners[pf.pci] = checks::owners_of(machine, names_of(pf));
        return owners;
    };
}

// Closes the connections of tokens that were revoked or replaced. Ends the runs of a VM that has
// stopped, even if another VM gets its CID at once. Runs that began after the change stay: they may
// belong to the VM's next start.
void follow_changes(Engine& engine, guestd::Link& guests, http::Server& server, FleetAccess& fleet,
                    Clock& clock) {
    struct Observed {
        Snapshot snapshot;
        Time at{};
    };
    Observed const first{engine.snapshot(), clock.now()};
    engine.control().on_change(
        [&engine, &guests, &server, &fleet, &clock, before = first]() mutable {
            auto const now = engine.snapshot();
            fleet.follow(now.desired->fleet);
            if (now.tokens != before.snapshot.tokens) server.cut(http::lapsed);
            auto const ended = ended_lives(before.snapshot.host->hypervisor, now.host->hypervisor);
            engine.runs().end_runs(runs_of(ended, now, before.at));
            before.snapshot.tokens = now.tokens;
            if (!now.host->hypervisor.stale) before = {now, clock.now()};
            guests.changed();
        });
}

// Closes the connections of sessions that have ended. Not at once: the answer to the request that
// ended one is sent first.
void cut_after_answer(http::Server& server,
                      std::function<void(std::function<void()>)> const& post) {
    post([&server] { server.cut(http::lapsed); });
}

void log_bug(std::string const& what) {
    log(Severity::error, "a bug in vfmgrd", {{"detail", what}});
}

auto counted_in(Metrics& metrics) {
    return [&metrics](Endpoint const* endpoint, http::Request const& request,
                      http::Response const& response) {
        metrics.answered(endpoint, request.method, static_cast<unsigned>(response.status));
    };
}

auto load_of(guestd::Link& guests, std::string store) {
    return [&guests, store = std::move(store)] {
        return ServiceLoad{guests.load(), store_size(store)};
    };
}

// From here on each event is logged, and passed on to those who follow them.
Result<EventStreams> follow_events(Engine& engine, http::Server& server, Metrics& metrics,
                                   EventStreamLimits const& limits) {
    EventStreams streams(limits,
                         {server.io_post(), [&engine](std::uint64_t after, std::size_t max) {
                              return engine.events_after(after, max);
                          }});
    auto const pass_on = [streams, &metrics](std::vector<Event> const& emitted) {
        log_events(emitted);
        metrics.emitted(emitted);
        streams.publish(emitted);
    };
    VFMGR_TRY(auto const latest, engine.on_events(pass_on, limits.recent.events));
    streams.begin(latest);
    return streams;
}

// Answers open requests first. An operation that still waits for a guest, or behind such an
// operation, is cut short when this process ends; recovery ends it at the next start.
void stop(Engine& engine, http::Server& server, AuditTrail& trail, Clock& clock) {
    engine.stop_waiting();
    server.finish(last_answers_time);
    static_cast<void>(engine.on_events({}, 0).has_value());
    engine.on_operation({});
    engine.control().on_change([] {});
    trail.finish();
    if (engine.stop(clock.steady_now() + stop_patience)) return;
    log(Severity::notice, "operations are left to the next start's recovery");
    ::_exit(0);
}

}  // namespace

Result<void> run(Config const& config, LoadConfig const& load, HostSeams const& seams, Bell& bell,
                 Clock& clock) {
    auto const& [kernel, hypervisor, connect_guestd, collect_host, collect_owners] = seams;
    auto const described = describe_early(hypervisor);
    VFMGR_TRY(auto control, open_control(config, clock));
    TokenUses token_uses;  // the engine's tasks refer to it, and to this
    Metrics metrics;
    Sessions sessions;
    auto access = access_at_start(config);
    RulesInForce rules(access.rules);
    FleetAccess fleet(config.state_dir + "/fleet-ca.pem");
    Engine engine(
        kernel, hypervisor, std::move(control), clock,
        [](ResponderTarget const& target) { return serve::RemoteResponder(target).info(); },
        config.rules.trusted_netdevs, other_owners(collect_owners), config.rules.bounds);
    engine.control().on_bug(log_bug);
    // Set before the first observation: a later change rings the bell, and is observed.
    guestd::Link guests(connect_guestd, guest_answers({engine, hypervisor, bell, clock}), clock);
    bell.on_ring([&engine, &guests](News news) {
        news == News::vms ? engine.observe_at_once() : engine.observe_again();
        if (news == News::vms) guests.changed();
    });
    auto const hearing = held([&bell] { bell.on_ring({}); });
    VFMGR_CHECK(engine.on_events(log_events, 0));
    VFMGR_CHECK(engine.recover(log_recovered));
    HostChecks host_checks(collect_host);
    FirmwareQuery firmware([&kernel = kernel] { return kernel.read_firmware(std::nullopt); });
    TrafficQuery traffic([&kernel = kernel] { return kernel.read_traffic(std::nullopt); });
    ConsoleQuery console(
        [folder = ConsoleFolder(config.console_folder)]() mutable { return folder.read(); });
    auto const trail = std::make_shared<AuditTrail>(engine.control());
    http::Server server(config.limits, [](std::string const& what) {
        log(Severity::error, "an exception ended a connection", {{"detail", what}});
    });
    server.on_turned_away(report_turned_away(audit_of(trail), clock));
    fleet.follow(engine.snapshot().desired->fleet);
    auto const names = [&engine, address = config.tls.address] {
        return names_of_host(engine, address);
    };
    VFMGR_TRY(auto const streams, follow_events(engine, server, metrics, config.events));
    sessions.on_end([&server, post = server.io_post()] { cut_after_answer(server, post); });
    auto gate = host_gate(rules, engine, trail, token_uses, sessions, fleet, clock);
    gate.every = counted_in(metrics);
    Measured const measured{metrics, traffic, load_of(guests, store_file(config))};
    auto const answer = router(
        engine,
        all_routes({engine, guests, host_checks, firmware, traffic, console, token_uses, sessions,
                    streams, measured, FleetSeams{engine, fleet, config.tls.enabled}},
                   clock),
        std::move(gate), server.io_post());
    VFMGR_TRY(auto served, listen_for_api(config, names(), server, answer, fleet, clock));
    access.rules.hosts = std::move(served.hosts);
    rules.set(std::move(access.rules));
    Reload reload({load, names, rules, server, streams, fleet, clock},
                  {config, std::move(access.unknown_groups), std::move(served.fingerprint)});
    engine.on_operation([&metrics](Operation const& operation) {
        log_operation(operation);
        metrics.operation_ended(operation);
    });
    follow_changes(engine, guests, server, fleet, clock);
    guests.start();
    engine.start_observing();
    engine.runs().start_schedule(schedule_hooks(guests));
    server.start();
    DueWork const due{engine, server, *trail, token_uses, reload, clock};
    serve_until_signal(attended_by(due), VFMGR_VERSION);
    save_all_token_uses(due);
    stop(engine, server, *trail, clock);
    return {};
}

Result<void> run_restore(Config const& config, Kernel& kernel, Clock& clock) {
    VFMGR_TRY(auto control, open_control(config, clock));
    VFMGR_TRY(auto const sentences, restore(kernel, *control, clock, config.rules.trusted_netdevs));
    for (auto const& one : sentences) log(Severity::notice, one);
    return {};
}

}  // namespace vfmgr
