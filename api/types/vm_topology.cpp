// SPDX-License-Identifier: Apache-2.0
#include "api/types/vm_topology.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<VmDevice> V>
void fields(F& f, V& device) {
    f.value("kind", device.kind);
    f.value("pci", device.pci);
    f.nullable("numa_node", device.numa_node);
    f.nullable("in_guest", device.in_guest);
    f.nullable("proposed", device.proposed);
}

template <class F, Of<VmPair> V>
void fields(F& f, V& pair) {
    f.value("gpu", pair.gpu);
    f.value("nic", pair.nic);
    f.value("on_host", pair.on_host);
    f.value("in_guest", pair.in_guest);
    f.value("proposed", pair.proposed);
}

template <class F, Of<VmTopology> V>
void fields(F& f, V& topology) {
    f.value("vm", topology.vm);
    f.value("vm_uuid", topology.vm_uuid);
    f.value("devices", topology.devices);
    f.value("pairs", topology.pairs);
    f.value("placed", topology.placed);
    f.value("xml", topology.xml);
    f.value("notes", topology.notes);
}

template struct Json<VmTopology>;

}  // namespace vfmgr
