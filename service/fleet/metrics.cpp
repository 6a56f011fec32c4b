// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/metrics.hpp"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>

#include "service/metrics/requests.hpp"

namespace vfmgr::fleet {

struct FleetMetrics::Counted {
    prometheus::Registry registry;
    AnsweredRequests requests{registry};
};

FleetMetrics::FleetMetrics() : counted_(std::make_unique<Counted>()) {
    add_build_info(counted_->registry, "vfmgr-fleetd");
}
FleetMetrics::~FleetMetrics() = default;

void FleetMetrics::answered(Endpoint const* endpoint, std::string const& method, unsigned status) {
    counted_->requests.count(endpoint, method, status);
}

std::string FleetMetrics::text(MetricFamilies const& read) const {
    auto all = counted_->registry.Collect();
    all.insert(all.end(), read.begin(), read.end());
    return prometheus::TextSerializer().Serialize(all);
}

MetricFamilies worker_metrics(Workers::Load const& load) {
    MetricFamilies all;
    auto waiting =
        Family::gauge("vfmgr_fleet_requests_waiting", "Requests that wait for a worker thread.");
    auto running =
        Family::gauge("vfmgr_fleet_requests_running", "Requests that a worker thread answers now.");
    auto refused = Family::counter("vfmgr_fleet_requests_refused_total",
                                   "Requests that found too many waiting.");
    waiting.add({}, load.waiting);
    running.add({}, load.running);
    refused.add({}, load.refused);
    move_all(all, {&waiting, &running, &refused});
    return all;
}

namespace {

MetricFamilies host_metrics(KnownFleet const& fleet) {
    MetricFamilies all;
    auto hosts = Family::gauge("vfmgr_fleet_hosts", "Hosts of the fleet, by what the fleet knows.");
    auto fenced =
        Family::gauge("vfmgr_fleet_hosts_fenced", "Hosts that somebody has stated to be off.");
    auto cordoned =
        Family::gauge("vfmgr_fleet_hosts_cordoned", "Hosts where nothing new is attached.");
    std::map<FleetHostState, std::size_t> states;
    std::size_t fenced_hosts = 0;
    std::size_t cordoned_hosts = 0;
    for (auto const& [name, stored] : *fleet.state.hosts) {
        ++states[stored.record.state];
        fenced_hosts += stored.record.fenced ? 1 : 0;
        cordoned_hosts += stored.record.cordoned ? 1 : 0;
    }
    for (auto const& [state, name] : enum_names<FleetHostState>)
        hosts.add({{"state", std::string(name)}}, states[state]);
    fenced.add({}, fenced_hosts);
    cordoned.add({}, cordoned_hosts);
    move_all(all, {&hosts, &fenced, &cordoned});
    return all;
}

double seconds_of(Time time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

MetricFamilies reach_metrics(KnownFleet const& fleet) {
    MetricFamilies all;
    auto unreachable =
        Family::gauge("vfmgr_fleet_hosts_unreachable", "Hosts that do not answer this replica.");
    auto since =
        Family::gauge("vfmgr_fleet_host_unreachable_since_timestamp_seconds",
                      "When a host last answered; for the 64 that have not answered for longest.");
    auto behind = Family::gauge(
        "vfmgr_fleet_events_behind",
        "Events that hosts had when they were reached, and that have not come from them yet.");
    std::multimap<Time, std::string> silent;
    std::uint64_t events = 0;
    for (auto const& [name, reach] : fleet.reaches) {
        if (reach.unreachable_since) silent.emplace(*reach.unreachable_since, name);
        if (reach.contact && reach.contact->last_event > reach.last_event.number)
            events += reach.contact->last_event - reach.last_event.number;
    }
    unreachable.add({}, silent.size());
    std::size_t named = 0;
    for (auto const& [when, name] : silent)
        if (named++ < named_hosts_max) since.add({{"host", name}}, seconds_of(when));
    behind.add({}, events);
    move_all(all, {&unreachable, &since, &behind});
    return all;
}

MetricFamilies inventory_metrics(KnownFleet const& fleet) {
    MetricFamilies all;
    auto vfs = Family::gauge("vfmgr_fleet_vfs", "VFs of all hosts, by state.");
    auto stale =
        Family::gauge("vfmgr_fleet_hosts_stale", "Hosts whose VFs are shown as they were, by why.");
    std::map<std::optional<VfStatus>, std::size_t> states;
    std::map<StaleWhy, std::size_t> reasons;
    for (auto const& host : fleet.inventory.hosts) {
        if (host->stale) ++reasons[host->stale->why];
        for (auto const& vf : host->documents.vfs->items) ++states[vf.facts.state];
    }
    for (auto const& [state, name] : enum_names<VfStatus>)
        vfs.add({{"state", std::string(name)}}, states[state]);
    vfs.add({{"state", std::string("unknown")}}, states[std::nullopt]);
    for (auto const& [why, name] : enum_names<StaleWhy>)
        stale.add({{"why", std::string(name)}}, reasons[why]);
    move_all(all, {&vfs, &stale});
    return all;
}

MetricFamilies etcd_metrics(KnownFleet const& fleet) {
    auto const& state = fleet.state;
    MetricFamilies all;
    auto stale = Family::gauge("vfmgr_fleet_etcd_stale_seconds",
                               "For how long etcd has not confirmed what this replica knows; 0: "
                               "it does.");
    auto revision =
        Family::gauge("vfmgr_fleet_etcd_revision", "Up to which this replica knows etcd.");
    auto schedules = Family::gauge("vfmgr_fleet_scheduler", "1: this replica schedules.");
    auto replicas = Family::gauge("vfmgr_fleet_replicas", "Replicas that are there.");
    auto const silence =
        state.stale_since ? fleet.now - *state.stale_since : Time::duration::zero();
    stale.add({}, std::max(0.0, std::chrono::duration<double>(silence).count()));
    revision.add({}, state.revision);
    schedules.add({}, state.leader && state.leader->record.replica == fleet.replica ? 1 : 0);
    replicas.add({}, state.replicas->size());
    move_all(all, {&stale, &revision, &schedules, &replicas});
    return all;
}

}  // namespace

MetricFamilies fleet_metrics(KnownFleet const& fleet) {
    MetricFamilies all;
    for (auto& more :
         {host_metrics(fleet), reach_metrics(fleet), inventory_metrics(fleet), etcd_metrics(fleet)})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

}  // namespace vfmgr::fleet
