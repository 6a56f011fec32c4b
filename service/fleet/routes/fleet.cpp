// SPDX-License-Identifier: Apache-2.0
// The fleet itself.
#include <fmt/format.h>

#include "api/types/fleet_info.hpp"
#include "api/types/json.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {
namespace {

Result<http::Response> show_fleet(Parts const& parts, Call const&) {
    auto const state = parts.registry.state();
    auto const reaches = parts.followers.reaches();
    FleetInfo info;
    info.fleet = parts.self.fleet;
    info.replica = parts.self.name;
    info.ca_sha256 = parts.self.ca_sha256;
    for (auto const& [name, replica] : *state->replicas) {
        auto const& [url, version, started_at] = replica.record;
        bool const schedules = state->leader && state->leader->record.replica == name;
        info.replicas.push_back({name, url, version, started_at, schedules});
    }
    info.hosts = static_cast<std::uint32_t>(state->hosts->size());
    for (auto const& [name, reach] : *reaches)
        info.unreachable_hosts += reach.unreachable_since ? 1U : 0U;
    for (auto const& [name, host] : *state->hosts)
        info.quarantined_hosts += host.record.state == FleetHostState::quarantined ? 1U : 0U;
    info.revision = state->revision;
    info.stale_since = state->stale_since;
    if (auto const problem = parts.registry.problem()) info.stale_why = problem->detail;
    info.problems = parts.keeper.problems();
    return json_response(200, info);
}

}  // namespace

std::vector<FleetRoute> fleet_routes(Parts const& parts) {
    return {{{"GET", "/v1/fleet", Role::viewer},
             at_once([parts](Call const& call) { return show_fleet(parts, call); })}};
}

std::function<void(Call const&, http::Respond)> work(Parts const& parts, Workers& workers,
                                                     Answer answer) {
    return on_workers(workers, [parts, answer](Call const& call, std::stop_token const&) {
        return answer(parts, call);
    });
}

namespace {

// A replica that has just begun knows of no host: an empty list, or 404, would be wrong.
Result<void> check_known(Parts const& parts) {
    auto const state = parts.registry.state();
    bool const read = state->revision > 0;
    if (read && (state->hosts->empty() || !parts.inventory.snapshot()->hosts.empty())) return {};
    auto const problem = read ? std::nullopt : parts.registry.problem();
    return fail(Problem::unavailable,
                fmt::format("replica {} has not read etcd yet{}", parts.self.name,
                            problem ? ": " + problem->detail : ""),
                problem ? problem->remedy : "ask again in a moment, or ask another replica");
}

}  // namespace

Error no_such_host(std::string const& name) {
    return {Problem::not_found, fmt::format("the fleet has no host {}", name),
            "vfctl host list shows them"};
}

std::vector<FleetRoute> all_fleet_routes(
    Parts const& parts, Workers& workers, FleetEventStreams const& streams,
    DoctorSources const& doctor, std::function<void(std::function<void()>)> const& io_post) {
    std::vector<FleetRoute> all;
    for (auto const& routes :
         {fleet_routes(parts), doctor_routes(parts, workers, doctor), host_routes(parts, workers),
          join_routes(parts, workers), identity_routes(parts, workers),
          reservation_routes(parts, workers), attachment_routes(parts), inventory_routes(parts),
          event_routes(streams), passing_routes(parts, io_post)})
        all.insert(all.end(), routes.begin(), routes.end());
    for (auto& route : all) {
        // These say themselves how old they are, and why.
        if (route.endpoint.path == "/v1/fleet" || route.endpoint.path == "/v1/fleet/checks")
            continue;
        route.handle = [parts, handle = std::move(route.handle)](Call const& call,
                                                                 http::Respond const& respond) {
            auto const known = check_known(parts);
            if (!known) return respond(refusal(call, known.error()));
            handle(call, respond);
        };
    }
    return all;
}

}  // namespace vfmgr::fleet
