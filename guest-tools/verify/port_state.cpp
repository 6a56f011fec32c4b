// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/port_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace vfmgr::verify {
namespace {

char const* name_of(LinkLayer layer) {
    return layer == LinkLayer::ethernet ? "Ethernet (RoCE)" : "InfiniBand";
}

// librdmacm does not check for it, and crashes perftest's -R (RDMA.md#node-guid).
Error no_guid(std::string const& device) {
    return {Problem::unavailable,
            fmt::format("the node GUID of {} is zero, so connections over it fail", device),
            "the VF had no MAC (InfiniBand: no GUIDs) when its driver was bound: set it on the "
            "host before that, then detach the VF and attach it again"};
}

char const* link_remedy(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_DOWN:
            return "bring up the netdev, and the PF on the host; check the PF's cable, and that "
                   "the VF's link_state is not disable";
        case IBV_PORT_INIT:
            return "start a subnet manager in the InfiniBand fabric";
        case IBV_PORT_ARMED:
            return "check the subnet manager: it has not activated the port";
        case IBV_PORT_ACTIVE_DEFER:
            return "check cable and switch: the link is retraining";
        default:
            return "check the kernel log: dmesg | tail";
    }
}

}  // namespace

Result<void> judge_port(PortState const& port, LinkLayer expected) {
    auto const shown = fmt::format("{} port {}", port.device, port.number);
    if (port.layer != expected)
        return fail(Problem::unsupported,
                    fmt::format("{} is {}, but the network is {}", shown, name_of(port.layer),
                                name_of(expected)),
                    "attach a VF of a PF with that link layer, or set the PF's on the host (2 is "
                    "Ethernet, 1 InfiniBand): mlxconfig -d PCI set LINK_TYPE_P1=2");
    if (port.node_guid == 0) return fail(no_guid(port.device));
    if (port.state == IBV_PORT_ACTIVE) return {};
    return fail(Problem::unavailable,
                fmt::format("{} is {}, not active", shown, ibv_port_state_str(port.state)),
                link_remedy(port.state));
}

Result<void> judge_ports(std::span<PortState const> ports, LinkLayer expected) {
    Result<void> first;
    for (auto const& port : ports) {
        auto const judged = judge_port(port, expected);
        if (judged) return {};
        if (first) first = judged;
    }
    return first;
}

}  // namespace vfmgr::verify
