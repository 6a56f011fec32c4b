// SPDX-License-Identifier: Apache-2.0
// Queueing disciplines and their drop counts: packets that tc shapes or polices are lost here, and
// no driver counts them. Free functions on a socket that the caller owns; its thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

struct Qdisc {
    int ifindex = 0;
    std::string kind;          // "fq_codel", "tbf"; "ingress" and "clsact" for arriving packets
    std::uint32_t handle = 0;  // 0x80010000 is 8001:
    std::uint32_t drops = 0;   // packets, including those dropped by a filter's police action
    bool operator==(Qdisc const&) const = default;
};

[[nodiscard]] Result<std::vector<Qdisc>> list_qdiscs(NlSocket& socket, Deadline deadline);

// Parses the payload of RTM_NEWQDISC; nothing without a kind.
[[nodiscard]] std::optional<Qdisc> parse_qdisc(ByteView payload);

}  // namespace vfmgr
