// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet_info.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<FleetReplica> V>
void fields(F& f, V& replica) {
    f.value("name", replica.name);
    f.value("url", replica.url);
    f.value("version", replica.version);
    f.value("started_at", replica.started_at);
    f.value("schedules", replica.schedules);
}

template <class F, Of<FleetInfo> V>
void fields(F& f, V& info) {
    f.value("fleet", info.fleet);
    f.value("replica", info.replica);
    f.value("ca_sha256", info.ca_sha256);
    f.value("replicas", info.replicas);
    f.value("hosts", info.hosts);
    f.value("unreachable_hosts", info.unreachable_hosts);
    f.value("quarantined_hosts", info.quarantined_hosts);
    f.value("revision", info.revision);
    f.nullable("stale_since", info.stale_since);
    f.nullable("stale_why", info.stale_why);
    f.value("problems", info.problems);
}

template struct Json<FleetInfo>;

}  // namespace vfmgr
