// SPDX-License-Identifier: Apache-2.0
// What a tenant sees of an item that is its own: what its host would show it. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "service/fleet/inventory/list_filters.hpp"

namespace vfmgr::fleet {

// Returns the item with the members that this version knows and tenants may see, written anew: what
// a newer host adds may be for admins only. nullopt: this version can't read the item.
[[nodiscard]] std::optional<std::string> tenant_text(FleetList list, Tenant const& viewer,
                                                     std::string_view item);

}  // namespace vfmgr::fleet
