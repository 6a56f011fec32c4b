// SPDX-License-Identifier: Apache-2.0
// Settings of VFs, through their PF's network device. Free functions on a socket that the caller
// owns; its thread. Facts: vfmgr/kernel/KERNEL.md#setting-vfs, vfmgr/kernel/KERNEL.md#reading-vfs.
#pragma once

#include <boost/container/flat_map.hpp>
#include <span>

#include "api/types/vf.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

using VfSettings = boost::container::flat_map<std::uint16_t, VfSpec>;  // by index

// Returns what the driver reports; a member that it does not report is absent. Drivers that fail
// for one VF leave that VF out.
[[nodiscard]] Result<VfSettings> read_vf_settings(NlSocket& socket, std::string const& netdev,
                                                  int ifindex, Deadline deadline);

// Returns the VFs' traffic counters by index, without VFs whose driver does not count. The kernel
// reports zeros for a driver that counts nothing (rtnl_fill_vfinfo()), so all zeros mean no
// counters. A separate request, since a driver may ask its firmware for each VF of the PF.
[[nodiscard]] Result<std::vector<VfTraffic>> read_vf_counters(NlSocket& socket,
                                                              std::string const& netdev,
                                                              int ifindex, Deadline deadline);

// Parts that need separate messages, in this order: the kernel ignores what follows a node GUID. No
// part has MSI-X vectors or RoCE.
enum class VfPart { all_but_guids, node_guid, port_guid };
inline constexpr std::array vf_parts{VfPart::all_but_guids, VfPart::node_guid, VfPart::port_guid};
[[nodiscard]] VfSpec only(VfSpec const& settings, VfPart part);
[[nodiscard]] bool has(VfSpec const& settings, VfPart part);

struct VfVerdict {
    NlAck ack;
    std::size_t carried = 0;  // VFs of `expected`, from the front; at least one
};
// Sends one message with that part for as many VFs from the front of `expected` as fit. A minimum
// rate needs the maximum beside it: one attribute sets both. The kernel stops at the first refused
// attribute and does not report which it was; what came before it stays applied.
[[nodiscard]] Result<VfVerdict> set_vfs(NlSocket& socket, std::string const& call, int ifindex,
                                        std::span<VfChange const> expected, VfPart part,
                                        Deadline deadline);

// Parses the payload of RTM_NEWLINK with IFLA_VFINFO_LIST in it.
[[nodiscard]] VfSettings parse_vf_settings(ByteView payload);
[[nodiscard]] std::vector<VfTraffic> parse_vf_counters(ByteView payload);
// The message of set_vfs().
struct VfMessage {
    NlRequest request;
    std::size_t carried = 0;
};
[[nodiscard]] VfMessage vf_message(int ifindex, std::span<VfChange const> expected, VfPart part);

}  // namespace vfmgr
