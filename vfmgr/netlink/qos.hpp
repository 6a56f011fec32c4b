// SPDX-License-Identifier: Apache-2.0
// What the kernel reports of priorities and queues: DCB, PAUSE, qdiscs. Free functions; any thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// Data centre bridging of a network device, as dcb(8) and lldptool show it: which priorities are
// lossless (PFC), which DSCP has which priority (APP). Values and free functions; any thread.

inline constexpr std::size_t dcb_priorities = 8;

inline constexpr std::uint8_t dcb_selects_dscp = 5;  // IEEE_8021QAZ_APP_SEL_DSCP
struct DcbApp {
    std::uint8_t selector = 0;
    std::uint8_t priority = 0;
    std::uint16_t protocol = 0;  // with dcb_selects_dscp: the DSCP
};

struct Dcb {
    std::string ifname;
    std::optional<std::uint8_t> pfc;  // bit n: priority n is lossless; absent: not reported
    std::vector<DcbApp> apps;
};
// mlx5 takes a packet's priority from its DSCP while any entry for a DSCP exists, and from its VLAN
// tag otherwise (drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c).
[[nodiscard]] bool trusts_dscp(Dcb const& dcb);
// Returns the highest priority of the DSCP's entries; 0 without one.
[[nodiscard]] std::uint8_t priority_of_dscp(Dcb const& dcb, std::uint8_t dscp);

// Builds DCB_CMD_IEEE_GET, which needs no privilege. A device without DCB answers EOPNOTSUPP.
[[nodiscard]] NlRequest dcb_request(std::string_view ifname);
// Parses the payload of its answer; nothing without a device's name.
[[nodiscard]] std::optional<Dcb> parse_dcb(ByteView payload);

// Flow control of a whole network device (802.3x PAUSE), as ethtool -a shows it. Free functions;
// any thread.

struct Pause {
    std::string ifname;
    bool receives = false;  // stops when its peer asks
    bool sends = false;     // asks its peer to stop
    bool operator==(Pause const&) const = default;
};

// `family` is ethtool's number on this kernel: parse_family() of devlink.hpp reads it from the
// answer to family_request().
[[nodiscard]] NlRequest family_request(std::string_view name);
[[nodiscard]] NlRequest pause_request(std::uint16_t family, std::string_view ifname);
// Parses the payload of ETHTOOL_MSG_PAUSE_GET_REPLY; nothing without a device's name.
[[nodiscard]] std::optional<Pause> parse_pause(ByteView payload);

// Queueing disciplines and their drop counts: packets that tc shapes or polices are lost here, and
// no driver counts them. Free functions on a socket that the caller owns; its thread.

struct Qdisc {
    int ifindex = 0;
    std::string kind;         // "fq_codel", "tbf"; "ingress" and "clsact" for arriving packets
    std::uint32_t drops = 0;  // packets, including those dropped by a filter's police action
    bool operator==(Qdisc const&) const = default;
};

[[nodiscard]] Result<std::vector<Qdisc>> list_qdiscs(NlSocket& socket, Deadline deadline);

// Parses the payload of RTM_NEWQDISC; nothing without a kind.
[[nodiscard]] std::optional<Qdisc> parse_qdisc(ByteView payload);

}  // namespace vfmgr
