// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet_identities.hpp"

#include "api/types/fleet_host.hpp"
#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/text.hpp"

namespace vfmgr {

template <class F, Of<FleetIdentity> V>
void fields(F& f, V& one) {
    f.value("kind", one.kind);
    f.value("identity", one.identity);
    f.nullable("network", one.network);
    f.value("host", one.host);
    f.nullable("vm", one.vm);
    f.nullable("vm_uuid", one.vm_uuid);
    f.nullable("since", one.since);
    f.nullable("public_key", one.public_key);
    f.value("source", one.source);
    f.value("state", one.state);
}

template <class F, Of<FleetClaimRequest> V>
void fields(F& f, V& request) {
    f.maybe("mac", request.mac);
    f.maybe("guid", request.guid);
    f.maybe("address", request.address);
    f.maybe("network", request.network);
    f.value("host", request.host);
    f.maybe("vm", request.vm);
}

void check(JsonReader& reader, FleetClaimRequest const& request) {
    auto const named = (request.mac ? 1 : 0) + (request.guid ? 1 : 0) + (request.address ? 1 : 0);
    if (named != 1) reader.complain("mac", "must be the only one of mac, guid and address");
    if (request.address.has_value() != request.network.has_value())
        reader.complain("network", "must be given with an address, and with nothing else");
    if (request.network && !can_be_a_networks(*request.network))
        reader.complain("network", rule_of_network_names);
    if (request.mac && (request.mac->multicast() || request.mac->zero()))
        reader.complain("mac", "must be a unicast MAC, and not zero");
    if (request.guid && request.guid->value == 0) reader.complain("guid", "must not be zero");
    if (!can_be_a_fleet_hosts(request.host)) reader.complain("host", rule_of_fleet_host_names);
    if (request.vm && !is_uuid(*request.vm))
        reader.complain("vm", "must be the UUID of a VM, in small letters");
}

template struct Json<FleetIdentity>;
template struct Json<FleetClaimRequest>;

}  // namespace vfmgr
