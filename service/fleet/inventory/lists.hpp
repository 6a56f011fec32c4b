// SPDX-License-Identifier: Apache-2.0
// The lists over all hosts: GET /v1/vfs and its like. The order is by host's name, then as the host
// lists; a cursor is a place in that order, so any replica goes on where another ended, and hosts
// and items that come or go meanwhile neither repeat nor hide others. Pure; any thread.
//
//   {"items": [{"host": "h7", …}, …], "next": …,
//    "stale": [{"host": "h9", "since": "…", "why": "unreachable", "detail": null}, …]}
//
// `stale` names the hosts, of those that the filters choose, whose part of this list may be old or
// is not whole: stale_max at most, and "stale_more" says how many others there are.
#pragma once

#include "service/fleet/inventory/list_filters.hpp"

namespace vfmgr::fleet {

inline constexpr std::size_t stale_max = 100;

// The parameters of the list's request; the route refuses others.
[[nodiscard]] std::vector<std::string> list_parameters(FleetList list);

// Answers a request for the list. `viewer`: the caller's tenant, who gets what the host would give
// it of its own things; null: of none. A tenant learns of stale hosts only where it has something.
[[nodiscard]] Result<http::Response> list_page(InventoryView const& view, FleetList list,
                                               http::Request const& request, Tenant const* viewer);

}  // namespace vfmgr::fleet
