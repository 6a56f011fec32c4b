// SPDX-License-Identifier: Apache-2.0
// What all hosts have, as one list each.
#include "service/fleet/inventory/lists.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {

std::vector<FleetRoute> inventory_routes(Parts const& parts) {
    std::vector<FleetRoute> routes;
    for (auto const& [list, name] : enum_names<FleetList>)
        routes.push_back(
            {{"GET", "/v1/" + std::string(name), Role::viewer, list_parameters(list),
              for_tenants_too},
             at_once([parts, list = list](Call const& call) {
                 auto const* const viewer = call.who.tenant ? &call.who.tenant->tenant : nullptr;
                 return list_page(*parts.inventory.snapshot(), list, call.request, viewer);
             })});
    return routes;
}

}  // namespace vfmgr::fleet
