// SPDX-License-Identifier: Apache-2.0
// Finds the RDMA port for one address on one netdev: by its RoCE v2 GID, each time anew. A GID's
// index is never stored: it moves (RDMA.md#gids). Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "api/types/ip_address.hpp"
#include "api/types/time.hpp"
#include "guest-tools/verify/handles.hpp"

namespace vfmgr::verify {

struct EndpointOptions {
    IpAddress address;
    std::string ifname;     // empty: any netdev
    std::uint8_t dscp = 0;  // of packets sent from there, 0..63
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
