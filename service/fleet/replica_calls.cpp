// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/replica_calls.hpp"

#include <fmt/format.h>

#include "api/types/fleet.hpp"

namespace vfmgr::fleet {

std::optional<Principal> replica_of(http::Peer const& peer, FleetTrust const& fleet, Time now) {
    auto const* const remote = std::get_if<http::TcpPeer>(&peer);
    if (!remote || !remote->certificate) return std::nullopt;
    auto const& shown = *remote->certificate;
    if (shown.authority.empty() || shown.authority != fleet.authority || shown.expires_at <= now)
        return std::nullopt;
    for (auto const& uri : shown.names)
        if (auto const name = parse_replica_uri(uri); name && name->fleet == fleet.fleet) {
            Principal who{"fleet:" + name->replica, Role::admin};
            who.fleet_replica = name->replica;
            return who;
        }
    return std::nullopt;
}

Result<FleetCall> passed_on_call(Principal const& sent_by, http::Request const& request,
                                 Tenants const& tenants) {
    if (sent_by.fleet_replica && !request.headers.contains(on_behalf_of_header))
        return fail(
            Problem::forbidden,
            fmt::format("replica {} does not say on whose behalf it comes", *sent_by.fleet_replica),
            "upgrade the replicas to the same version");
    VFMGR_TRY(auto call, fleet_call(sent_by, request.headers, tenants));
    if (!sent_by.fleet_replica) return call;
    // The client's own name, which every replica knows it by.
    VFMGR_TRY(auto const on, parse_on_behalf_of(request.headers.at(on_behalf_of_header)));
    call.who.name = on.who;
    return call;
}

void let_replicas_in(Gate& gate, FleetTrust const& fleet, std::function<Access()> access,
                     Clock& clock) {
    gate.authenticate = [others = std::move(gate.authenticate), fleet,
                         &clock](http::Request const& request) -> Result<Principal> {
        if (!request.headers.contains("authorization"))
            if (auto replica = replica_of(request.peer, fleet, clock.now()))
                return std::move(*replica);
        return others(request);
    };
    gate.still_holds = [others = std::move(gate.still_holds), fleet, &clock](
                           Principal const& who, http::Peer const& peer) {
        if (!who.fleet_replica) return others(who, peer);
        auto const again = replica_of(peer, fleet, clock.now());
        return again && again->fleet_replica == who.fleet_replica;
    };
    gate.speak_for = [access = std::move(access)](Principal const& who,
                                                  http::Request const& request) {
        return passed_on_call(who, request, *access().tenants);
    };
}

}  // namespace vfmgr::fleet
