// SPDX-License-Identifier: Apache-2.0
// Owners of verbs objects: each object is freed once, in the right order, by its owner. Not shared
// between threads without the owner's lock.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/os/handle.hpp"
#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "vfmgr/rdma/subnet.hpp"

namespace vfmgr::verify {

using VerbsDevices = Handle<ibv_device*, ibv_free_device_list>;
using VerbsContext = Handle<ibv_context, ibv_close_device>;
using VerbsPd = Handle<ibv_pd, ibv_dealloc_pd>;
using VerbsChannel = Handle<ibv_comp_channel, ibv_destroy_comp_channel>;
using VerbsQueue = Handle<ibv_cq, ibv_destroy_cq>;
using VerbsReceives = Handle<ibv_srq, ibv_destroy_srq>;
using VerbsPair = Handle<ibv_qp, ibv_destroy_qp>;
using VerbsAddress = Handle<ibv_ah, ibv_destroy_ah>;
using VerbsMr = Handle<ibv_mr, ibv_dereg_mr>;

// Whether an RDMA port can do what is required of it, and a remedy where it can't. Pure.

struct PortState {
    std::string device;  // "mlx5_3"
    std::uint8_t number = 1;
    std::uint64_t node_guid = 0;  // of the device
    ibv_port_state state = IBV_PORT_NOP;
    LinkLayer layer = LinkLayer::ethernet;
    LinkLayer needed = LinkLayer::ethernet;  // the network's
    std::uint16_t lid = 0;                   // of an InfiniBand port
};

// Checks the root cause first: another link layer than the network's, no GUID, no link, no LID.
[[nodiscard]] Result<void> judge_port(PortState const& port);

// For several ports, none of which has the required GID: returns the first port's Error if all of
// them have one. A sound port may have been the intended one.
[[nodiscard]] Result<void> judge_ports(std::span<PortState const> ports);

// Finds the RDMA port for one address on one netdev: by its RoCE v2 GID, each time anew. A GID's
// index is never stored: it moves (RDMA.md#gids). An InfiniBand port is found by its GUID: an
// address makes no GID there. Any thread.

struct EndpointOptions {
    IpAddress address;
    std::string ifname;                   // empty: any netdev
    std::uint8_t dscp = 0;                // of packets sent from there, 0..63
    std::optional<Guid> port_guid{};      // for InfiniBand; the address is then IPoIB's
    std::optional<std::uint16_t> pkey{};  // for queue pairs, with its highest bit; absent: any
    Grh grh = Grh::if_needed;
};

struct Endpoint {
    VerbsContext context;  // members are destroyed from the last to the first
    VerbsPd pd;
    std::string device;  // "mlx5_3", "rxe0"
    std::uint8_t number = 1;
    std::uint8_t gid_index = 0;
    std::array<std::uint8_t, 16> gid{};
    std::uint8_t dscp = 0;          // of packets that it sends
    std::uint32_t path_mtu = 1024;  // bytes, of the active link
    std::uint8_t reads_max = 1;     // that it answers at once
    std::uint8_t reads_issued_max = 1;
    std::optional<SubnetPort> subnet{};  // of an InfiniBand port
    [[nodiscard]] std::uint16_t pkey_index() const {
        return subnet ? subnet->pkey_index : std::uint16_t{0};
    }
    bool software = false;  // SoftRoCE or siw: the work is done on this machine's CPUs
};

inline constexpr std::chrono::milliseconds endpoint_wait{3000};
// Waits up to `wait` for the device and its GID: both appear some time after link and address.
[[nodiscard]] Result<Endpoint> open_endpoint(EndpointOptions const& options,
                                             std::chrono::milliseconds wait);

// SoftRoCE or siw, by the device's attributes.
[[nodiscard]] bool is_software(ibv_device_attr const& device);

[[nodiscard]] std::string gid_hex(std::array<std::uint8_t, 16> const& gid);   // 32 digits
[[nodiscard]] std::string gid_text(std::array<std::uint8_t, 16> const& gid);  // 0000:…:c0a8:640a
[[nodiscard]] Result<std::array<std::uint8_t, 16>> parse_gid(std::string_view hex);
// 0 for a value that is not one of the five.
[[nodiscard]] std::uint32_t mtu_bytes(ibv_mtu mtu);
[[nodiscard]] Result<ibv_mtu> mtu_of_bytes(std::uint32_t bytes);

}  // namespace vfmgr::verify
