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

// verification.md, 5: perftest and librdmacm do not check for it, and crash.
Error no_guid(std::string const& device) {
    return {
        Problem::unavailable,
        fmt::format("{} has no node GUID (it is zero), so that connections over it fail", device),
        "the driver found the VF without a MAC (InfiniBand: without GUIDs): set it on the host "
        "before the VF's driver is bound, detach the VF and attach it again"};
}

char const* link_remedy(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_DOWN:
            return "set the netdev up, and on the host the PF; check its cable, and that the VF's "
                   "link_state is not disable";
        case IBV_PORT_INIT:
            return "start a subnet manager in the InfiniBand fabric";
        case IBV_PORT_ARMED:
            return "look at the subnet manager: it has not activated the port";
        case IBV_PORT_ACTIVE_DEFER:
            return "the link is being trained anew: check cable and switch";
        default:
            return "see the kernel's log: dmesg | tail";
    }
}

}  // namespace

Result<void> judge_port(PortState const& port, LinkLayer expected) {
    auto const shown = fmt::format("{} port {}", port.device, port.number);
    if (port.layer != expected)
        return fail(
            Problem::unsupported,
            fmt::format("{} is {}, and the network is {}", shown, name_of(port.layer),
                        name_of(expected)),
            "attach a VF of a PF with that link layer, or set the PF's on the host: mlxconfig "
            "-d PCI set LINK_TYPE_P1=2 is Ethernet, 1 InfiniBand");
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
