// SPDX-License-Identifier: Apache-2.0
// Whether an RDMA port can carry what is wanted of it, and what to do where it can't. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/types/problem.hpp"

namespace vfmgr::verify {

enum class LinkLayer { ethernet, infiniband };

struct PortState {
    std::string device;  // "mlx5_3"
    std::uint8_t number = 1;
    std::uint64_t node_guid = 0;  // of the device
    ibv_port_state state = IBV_PORT_NOP;
    LinkLayer layer = LinkLayer::ethernet;
};

// In the order of what explains what: the other link layer, no GUID, no link.
[[nodiscard]] Result<void> judge_port(PortState const& port, LinkLayer wanted);

// Of several ports, none of which has the wanted GID: the Error of the first that has one, if each
// has. One that is sound may have been meant.
[[nodiscard]] Result<void> judge_ports(std::span<PortState const> ports, LinkLayer wanted);

}  // namespace vfmgr::verify
