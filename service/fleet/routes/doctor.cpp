// SPDX-License-Identifier: Apache-2.0
// What is wrong with the fleet, as this replica sees it.
#include "service/fleet/doctor/doctor.hpp"
#include "api/types/json.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {
namespace {

// A member that does not answer takes a few seconds of it.
constexpr std::chrono::seconds members_patience{20};

Query fleets_key(Revision revision) {
    return {.key = std::string(keys::fleet), .revision = revision, .content = Content::no_value};
}

// not_found is etcd's word for what it has compacted.
Result<bool> has_old(Etcd& etcd, Revision revision, Deadline deadline) {
    if (revision <= old_by) return false;
    auto const found = etcd.range(fleets_key(revision - old_by), deadline);
    if (found) return true;
    if (found.error().problem == Problem::not_found) return false;
    return fail(found.error());
}

Result<http::Response> check_fleet_now(Parts const& parts, DoctorSources const& sources) {
    Observed observed;
    observed.now = parts.clock.now();
    observed.replica = parts.self.name;
    observed.state = parts.registry.state();
    observed.not_followed = parts.registry.problem();
    observed.reaches = parts.followers.reaches();
    observed.inventory = parts.inventory.snapshot();
    auto const deadline = parts.clock.steady_now() + members_patience;
    observed.members = sources.etcd.members(deadline);
    observed.revision = observed.state->revision;
    // Members that do not answer may have taken all of the time.
    auto const soon = parts.clock.steady_now() + etcd_patience;
    if (auto const now = sources.etcd.range(fleets_key(0), soon)) observed.revision = now->revision;
    observed.has_old = has_old(sources.etcd, observed.revision, soon);
    for (auto const& file : sources.certificate_files)
        observed.certificates.push_back(
            {file,
             http::read_certificate(file).map([](auto const& one) { return one.expires_at; })});
    return json_response(200, judge(observed));
}

}  // namespace

std::vector<FleetRoute> doctor_routes(Parts const& parts, Workers& workers,
                                      DoctorSources const& sources) {
    return {{{"GET", "/v1/fleet/checks", Role::viewer},
             on_workers(workers, [parts, sources](Call const&, std::stop_token const&) {
                 return check_fleet_now(parts, sources);
             })}};
}

}  // namespace vfmgr::fleet
