// SPDX-License-Identifier: Apache-2.0
#include "api/types/vf_state.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<VfioHolder> V>
void fields(F& f, V& holder) {
    f.value("pid", holder.pid);
    f.value("comm", holder.comm);
}

template <class F, Of<VfCounters> V>
void fields(F& f, V& counters) {
    f.nullable("rx_packets", counters.rx_packets);
    f.nullable("rx_bytes", counters.rx_bytes);
    f.nullable("rx_dropped", counters.rx_dropped);
    f.nullable("tx_packets", counters.tx_packets);
    f.nullable("tx_bytes", counters.tx_bytes);
    f.nullable("tx_dropped", counters.tx_dropped);
    f.nullable("multicast", counters.multicast);
    f.nullable("broadcast", counters.broadcast);
}

template <class F, Of<VfState> V>
void fields(F& f, V& vf) {
    f.value("index", vf.index);
    f.value("pci", vf.pci);
    f.nullable("driver", vf.driver);
    f.nullable("iommu_group", vf.iommu_group);
    f.nullable("ifname", vf.ifname);
    f.with("settings", vf.settings, known_to_json, read_reported);
    f.defaulted("holders", vf.holders);
}

template struct Json<VfCounters>;
template struct Json<VfioHolder>;
template struct Json<VfState>;

}  // namespace vfmgr
