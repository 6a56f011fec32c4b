// SPDX-License-Identifier: Apache-2.0
#include "api/types/rdma_name.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<RdmaGid> V>
void fields(F& f, V& gid) {
    f.value("index", gid.index);
    f.value("gid", gid.gid);
    f.value("type", gid.type);
    f.nullable("address", gid.address);
    f.nullable("ifname", gid.ifname);
}

template <class F, Of<RdmaName> V>
void fields(F& f, V& name) {
    f.value("kind", name.kind);
    f.value("rdma_device", name.rdma_device);
    f.value("port", name.port);
    f.nullable("ifname", name.ifname);
    f.nullable("master", name.master);
    f.nullable("pci", name.pci);
    f.nullable("vf", name.vf);
    f.nullable("represented_by", name.represented_by);
    f.nullable("represents", name.represents);
    f.nullable("phys_port_name", name.phys_port_name);
    f.nullable("driver", name.driver);
    f.nullable("numa_node", name.numa_node);
    f.nullable("netdev_up", name.netdev_up);
    f.nullable("state", name.state);
    f.nullable("phys_state", name.phys_state);
    f.nullable("link_layer", name.link_layer);
    f.nullable("rate", name.rate);
    f.nullable("hca_type", name.hca_type);
    f.nullable("firmware", name.firmware);
    f.nullable("board_id", name.board_id);
    f.nullable("node_guid", name.node_guid);
    f.value("gids", name.gids);
}

template struct Json<RdmaGid>;
template struct Json<RdmaName>;

}  // namespace vfmgr
