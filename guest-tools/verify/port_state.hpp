// SPDX-License-Identifier: Apache-2.0
// Whether an RDMA port can do what is required of it, and a remedy where it can't. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/types/link_layer.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::verify {

struct PortState {
    std::string device;  // "mlx5_3"
    std::uint8_t number = 1;
    std::uint64_t node_guid = 0;  // of the device
    ibv_port_state state = IBV_PORT_NOP;
    LinkLayer layer = LinkLayer::ethernet;
};

// Checks the root cause first: the other link layer, no GUID, no link.
[[nodiscard]] Result<void> judge_port(PortState const& port, LinkLayer expected);

// For several ports, none of which has the required GID: returns the first port's Error if all of
// them have one. A sound port may have been the intended one.
[[nodiscard]] Result<void> judge_ports(std::span<PortState const> ports, LinkLayer expected);

}  // namespace vfmgr::verify
