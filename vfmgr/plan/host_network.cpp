// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/host_network.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<NetdevState> V>
void fields(F& f, V& netdev) {
    f.value("ethernet", netdev.ethernet);
    f.value("loopback", netdev.loopback);
    f.value("up", netdev.up);
    f.nullable("controller", netdev.controller);
    f.nullable("parent", netdev.parent);
    f.nullable("pci", netdev.pci);
}

template <class F, Of<HostNetworkView> V>
void fields(F& f, V& network) {
    f.value("netdevs", network.netdevs);
    f.value("rdma", network.rdma);
    f.nullable("rxe_module", network.rxe_module);
    f.nullable("siw_module", network.siw_module);
    f.value("stale", network.stale);
    f.value("stale_reason", network.stale_reason);
    f.value("observed_at", network.observed_at);
}

template struct Json<NetdevState>;
template struct Json<HostNetworkView>;

}  // namespace vfmgr
