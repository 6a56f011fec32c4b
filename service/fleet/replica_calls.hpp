// SPDX-License-Identifier: Apache-2.0
// Requests that one replica passes on to the one that schedules. It shows its certificate, which
// the fleet's CA signed, and says on whose behalf it comes: then the request is that client's, with
// its role, as if it had come here itself. For itself a replica may do nothing.
#pragma once

#include <optional>

#include "service/routes/gate.hpp"

namespace vfmgr::fleet {

// The replica of this fleet that the peer is, as a principal; absent: it is none.
[[nodiscard]] std::optional<Principal> replica_of(http::Peer const& peer, FleetTrust const& fleet,
                                                  Time now);
// Whose request it is. invalid_request: somebody else sends a replica's headers.
[[nodiscard]] Result<FleetCall> passed_on_call(Principal const& sent_by,
                                               http::Request const& request,
                                               Tenants const& tenants);

// Has the gate let such requests in. What is referred to outlives it.
void let_replicas_in(Gate& gate, FleetTrust const& fleet, std::function<Access()> access,
                     Clock& clock);

// Whether a replica has passed the request on: it goes no further.
[[nodiscard]] inline bool is_passed_on(Call const& call) {
    return call.who.fleet_replica.has_value();
}

}  // namespace vfmgr::fleet
