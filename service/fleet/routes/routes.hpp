// SPDX-License-Identifier: Apache-2.0
// The routes of the fleet's API beside those of every replica, one file for each noun. What they
// get outlives them.
#pragma once

#include <functional>
#include <vector>

#include "service/fleet/api.hpp"
#include "service/fleet/inventory/fleet_event_streams.hpp"
#include "service/fleet/parts.hpp"

namespace vfmgr::fleet {

[[nodiscard]] std::vector<FleetRoute> fleet_routes(Parts const& parts);
[[nodiscard]] std::vector<FleetRoute> host_routes(Parts const& parts, Workers& workers);
[[nodiscard]] std::vector<FleetRoute> join_routes(Parts const& parts, Workers& workers);
[[nodiscard]] std::vector<FleetRoute> identity_routes(Parts const& parts, Workers& workers);

[[nodiscard]] std::vector<FleetRoute> reservation_routes(Parts const& parts, Workers& workers);
[[nodiscard]] std::vector<FleetRoute> attachment_routes(Parts const& parts);
[[nodiscard]] std::vector<FleetRoute> inventory_routes(Parts const& parts);
[[nodiscard]] std::vector<FleetRoute> event_routes(FleetEventStreams const& streams);
// `io_post` runs work on the io thread of the server that answers. After all other routes of hosts.
[[nodiscard]] std::vector<FleetRoute> passing_routes(
    Parts const& parts, std::function<void(std::function<void()>)> io_post);

// What doctor looks at besides the parts.
struct DoctorSources {
    Etcd& etcd;
    std::vector<std::string> certificate_files;  // that this replica uses
};
[[nodiscard]] std::vector<FleetRoute> doctor_routes(Parts const& parts, Workers& workers,
                                                    DoctorSources const& sources);

// All of them. The first that fits a request answers it.
[[nodiscard]] std::vector<FleetRoute> all_fleet_routes(
    Parts const& parts, Workers& workers, FleetEventStreams const& streams,
    DoctorSources const& doctor, std::function<void(std::function<void()>)> const& io_post);

// For a name that no host of the fleet has.
[[nodiscard]] Error no_such_host(std::string const& name);

// Answers on one of the workers' threads.
using Answer = Result<http::Response> (*)(Parts const& parts, Call const& call);
[[nodiscard]] std::function<void(Call const&, http::Respond)> work(Parts const& parts,
                                                                   Workers& workers, Answer answer);

// The same on the replica that schedules, to which this one passes the call on if it is another.
[[nodiscard]] std::function<void(Call const&, http::Respond)> at_leader(Parts const& parts,
                                                                        Workers& workers,
                                                                        Answer answer);
// Has the host answer `request`, as one of the call's principal. What it answers gets the host's
// name as its first member, and a Location points below the host.
void pass_to_host(Parts const& parts, Call const& call, std::string const& name,
                  http::Request request, http::Respond const& respond);

// Reads a request's body. Include api/types/json.hpp with it.
template <class T>
[[nodiscard]] Result<T> body_of(Call const& call) {
    return from_json_text<T>(call.request.body);
}

}  // namespace vfmgr::fleet
