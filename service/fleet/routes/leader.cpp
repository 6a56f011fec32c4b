// SPDX-License-Identifier: Apache-2.0
// What only the replica that schedules does. Others pass the request on to it, once.
#include <fmt/format.h>

#include "api/http/forward.hpp"
#include "api/types/addresses.hpp"
#include "service/fleet/hosts/host_calls.hpp"
#include "service/fleet/replica_calls.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::uint16_t replica_port = 8480;
// Three hosts, each asked for its time, and etcd.
constexpr std::chrono::milliseconds leader_timeout{120'000};

http::Response nobody_schedules(Call const& call, std::string detail) {
    auto response = refusal(call, discreetly({Problem::unavailable, std::move(detail),
                                              "send it again in a few seconds: vfctl fleet show "
                                              "at a replica says which one schedules"}));
    response.headers["Retry-After"] = "2";
    return response;
}

Result<http::TlsTarget> target_of_leader(Parts const& parts, LeaderRecord const& leader) {
    auto const place = parse_https_url(leader.url, replica_port);
    if (!place)
        return fail(Problem::internal,
                    fmt::format("{} is not the address of a replica", leader.url),
                    fmt::format("set url in the fleetd.toml of replica {}", leader.replica));
    http::TlsTarget target;
    target.host = place->host;
    target.port = place->port;
    target.ca_file = parts.self.ca_file;
    return target;
}

void pass_to_leader(Parts const& parts, Call const& call, http::Respond const& respond) {
    auto const state = parts.registry.state();
    if (!state->leader || state->leader->record.replica == parts.self.name)
        return respond(nobody_schedules(call, "no replica schedules now: one is being elected"));
    auto const& leader = state->leader->record;
    if (is_passed_on(call))
        return respond(nobody_schedules(
            call, fmt::format("replica {} has passed this on to {}, and {} schedules now",
                              *call.who.fleet_replica, parts.self.name, leader.replica)));
    auto const target = target_of_leader(parts, leader);
    if (!target) return respond(refusal(call, target.error()));
    auto request = http::forwarded(call.request, call.request.path);
    set_on_behalf(request, call.who);
    parts.pool.send(*target, request, leader_timeout,
                    [&call, respond, name = leader.replica](Result<http::Response> answer) {
                        if (answer) return respond(http::forwarded_answer(std::move(*answer)));
                        auto error = answer.error();
                        error.detail =
                            fmt::format("replica {}, which schedules: {}", name, error.detail);
                        respond(refusal(call, error));
                    });
}

}  // namespace

std::function<void(Call const&, http::Respond)> at_leader(Parts const& parts, Workers& workers,
                                                          Answer answer) {
    return [parts, here = work(parts, workers, answer)](Call const& call,
                                                        http::Respond const& respond) {
        if (parts.scheduler.leads()) return here(call, respond);
        pass_to_leader(parts, call, respond);
    };
}

}  // namespace vfmgr::fleet
