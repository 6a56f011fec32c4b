// SPDX-License-Identifier: Apache-2.0
// One RDMA port or NIC function by all of its names: the joined output of ibdev2netdev -v,
// show_gids, ibstat, rdma link and lspci. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/guid.hpp"
#include "api/types/ip_address.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/link_layer.hpp"
#include "api/types/pci_address.hpp"

namespace vfmgr {

enum class RdmaKind {
    nic,       // of a PCI function
    software,  // rxe or siw, on a netdev
    smi,       // a MAD device of a multi-plane NIC; carries no data traffic
    none,      // a NIC, or a VF, that offers no RDMA device here: see its driver
};
template <>
inline constexpr std::array<EnumName<RdmaKind>, 4> enum_names<RdmaKind> = {
    {{RdmaKind::nic, "nic"},
     {RdmaKind::software, "software"},
     {RdmaKind::smi, "smi"},
     {RdmaKind::none, "none"}}};

struct RdmaGid {
    int index = 0;
    std::string gid;                   // "0000:0000:0000:0000:0000:ffff:c0a8:0101"
    std::string type;                  // "RoCE v2", "IB/RoCE v1"; empty if the kernel hides it
    std::optional<IpAddress> address;  // the address behind the GID, on Ethernet
    std::optional<std::string> ifname;
    bool operator==(RdmaGid const&) const = default;
};

struct RdmaName {
    RdmaKind kind = RdmaKind::none;
    std::string rdma_device;                    // "mlx5_0"; empty: none
    int port = 0;                               // 0 without a device
    std::optional<std::string> ifname;          // the function's own
    std::optional<std::string> master;          // the bond or bridge that the netdev is in
    std::optional<PciAddress> pci;              // for software: of its netdev
    std::optional<VfId> vf;                     // if `pci` is a VF
    std::optional<std::string> represented_by;  // the VF's representor netdev on this host
    std::optional<VfId> represents;             // the VF that the netdev represents
    std::optional<std::string> phys_port_name;  // "p0", "pf0vf1"
    std::optional<std::string> driver;          // of the PCI function: "mlx5_core", "vfio-pci"
    std::optional<int> numa_node;
    std::optional<bool> netdev_up;  // administratively
    std::optional<std::string> state, phys_state;
    std::optional<LinkLayer> link_layer;
    std::optional<std::string> rate;  // meaningless for software
    std::optional<std::string> hca_type, firmware, board_id;
    std::optional<Guid> node_guid;
    std::vector<RdmaGid> gids;
    bool operator==(RdmaName const&) const = default;
};

extern template struct Json<RdmaGid>;
extern template struct Json<RdmaName>;

}  // namespace vfmgr
