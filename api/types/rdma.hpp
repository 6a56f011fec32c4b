// SPDX-License-Identifier: Apache-2.0
// RDMA devices of a host: their names, software links, and the window for interop. Values; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// One RDMA port or NIC function by all of its names: the joined output of ibdev2netdev -v,
// show_gids, ibstat, rdma link and lspci. Values; any thread.

enum class RdmaKind {
    nic,       // of a PCI function
    software,  // rxe or siw, on a netdev
    smi,       // a MAD device of a multi-plane NIC; carries no data traffic
    none,      // a NIC, or a VF, that offers no RDMA device here: see its driver
};

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

extern template struct Json<RdmaName>;

// RDMA in software on a network device: SoftRoCE (rxe) or iWARP (siw); desired and observed.
// Values; any thread.

enum class SoftRdmaType { rxe, siw };

// The kernel's module for the type.
[[nodiscard]] constexpr char const* module_of(SoftRdmaType type) {
    return type == SoftRdmaType::rxe ? "rdma_rxe" : "siw";
}

// The body of a PUT, for the link that its path names.
struct RdmaLinkSpec {
    SoftRdmaType type = SoftRdmaType::rxe;
    std::string ifname;
    bool operator==(RdmaLinkSpec const&) const = default;
};
struct SoftRdmaLink {
    std::string name;  // the RDMA device's
    SoftRdmaType type = SoftRdmaType::rxe;
    std::string ifname;
    bool operator==(SoftRdmaLink const&) const = default;
};

// Checks a name that the kernel accepts and that is safe in a path and on a terminal. Returns
// nullopt if it is valid, otherwise what is wrong with it.
[[nodiscard]] std::optional<std::string> wrong_rdma_name(std::string_view name);
[[nodiscard]] std::optional<std::string> wrong_netdev_name(std::string_view name);

// A user of an RDMA device's objects: a process, or a part of the kernel.
struct RdmaUser {
    std::optional<std::int32_t> pid;  // absent: the kernel itself
    std::string comm;                 // "ibv_rc_pingpong", "nvme_rdma"
    std::string holds;                // "queue pair", "CM id", "protection domain", "context"
    bool operator==(RdmaUser const&) const = default;
};

enum class RdmaLinkOwner { vfmgr, other };

enum class RdmaLinkState {
    present,    // as desired, or not managed by vfmgr
    waiting,    // its netdev is absent; created when the netdev appears
    missing,    // its netdev is present but the link is not (yet); `detail` has the reason
    untrusted,  // absent, and its netdev is no longer among the trusted ones
    conflict,   // another device has its name
};

struct ObservedRdmaLink {
    std::optional<SoftRdmaType> type;   // absent: neither rxe nor siw, or not reported
    std::optional<std::string> ifname;  // absent: gone, or in another network namespace
    bool active = false;                // the port's state
    std::vector<RdmaUser> users;
    std::optional<std::string> users_unknown;  // why its users can't be determined; counts as used
    bool operator==(ObservedRdmaLink const&) const = default;
};

// A link of this host, as returned by GET.
struct RdmaLink {
    std::string name;
    RdmaLinkOwner owner = RdmaLinkOwner::other;
    RdmaLinkState state = RdmaLinkState::present;
    std::string detail;                   // one sentence; may be empty
    std::uint64_t revision = 0;           // ETag; 0: not requested from vfmgr
    std::optional<RdmaLinkSpec> desired;  // absent: not managed by vfmgr
    std::optional<ObservedRdmaLink> observed;
};

extern template struct Json<RdmaLinkSpec>;
extern template struct Json<SoftRdmaLink>;
extern template struct Json<ObservedRdmaLink>;
extern template struct Json<RdmaLink>;

// The host's end for interop clients (rping, ibv_rc_pingpong, perftest), requested with PUT
// /v1/attachments/{id}/interop for one guest and a limited time. Values.

// The ports that those clients use by default.
inline constexpr std::uint16_t perftest_port = 18515;  // TCP; also ibv_rc_pingpong's
inline constexpr std::uint16_t rping_port = 7174;      // RDMA CM's, not TCP's: inside UDP 4791

// What the host does for perftest; as the StreamKind of the same name.
enum class InteropTest { one_sided, send, send_echo, write_echo };

// perftest sends its server neither the kind of test nor the message length, and expects both ends
// to be started with the same options.
struct InteropRequest {
    std::uint32_t seconds = 600;                // 1..3600
    InteropTest test = InteropTest::one_sided;  // what perftest measures
    std::uint32_t message_bytes = 8 << 20;      // the longest; for write_echo: exactly this
};

struct InteropWindow {
    std::string attachment;
    IpAddress address;  // that the clients connect to
    InteropTest test = InteropTest::one_sided;
    std::uint32_t message_bytes = 0;
    Time open_until{};
    std::vector<std::string> commands;  // that work in the VM now
    std::string rping;                  // why rping is not served; empty: it is served
    std::uint64_t served = 0;           // clients that reached their test
    std::uint64_t refused = 0;          // clients that did not
    bool operator==(InteropWindow const&) const = default;
};

extern template struct Json<InteropRequest>;
extern template struct Json<InteropWindow>;

}  // namespace vfmgr
