// SPDX-License-Identifier: Apache-2.0
#include "api/types/host_tree.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<HostDevice> V>
void fields(F& f, V& device) {
    f.value("kind", device.kind);
    f.value("name", device.name);
    f.value("vendor", device.vendor);
    f.value("device", device.device);
    f.value("place", device.place);
}

template <class F, Of<GpuPair> V>
void fields(F& f, V& pair) {
    f.value("gpu", pair.gpu);
    f.nullable("pf", pair.pf);
    f.value("distance", pair.distance);
}

template <class F, Of<HostTree> V>
void fields(F& f, V& tree) {
    f.value("devices", tree.devices);
    f.value("pairs", tree.pairs);
    f.value("notes", tree.notes);
}

template struct Json<HostTree>;

}  // namespace vfmgr
