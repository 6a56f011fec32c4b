// SPDX-License-Identifier: Apache-2.0
// The events of all hosts, as one stream.
#include "service/fleet/inventory/fleet_event_reader.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {

std::vector<FleetRoute> event_routes(FleetEventStreams const& streams) {
    return {{{"GET", "/v1/events", Role::viewer, event_filter_parameters(), for_tenants_too},
             at_once([streams](Call const& call) {
                 std::shared_ptr<Tenant const> viewer;
                 if (call.who.tenant) viewer = {call.who.tenant, &call.who.tenant->tenant};
                 return streams.open(call.request, call.who.name, viewer);
             })}};
}

}  // namespace vfmgr::fleet
