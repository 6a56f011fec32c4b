// SPDX-License-Identifier: Apache-2.0
// What vfmgr's own packet filter holds: two sets of nftables, read as `nft list set` does. It is
// written by nft(8) (kernel/leg_filter.hpp). Free functions; any thread.
#pragma once

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// The table of the family inet, and its sets. The filter's rules name them.
namespace nft {
inline constexpr char const* table = "vfmgr";
inline constexpr char const* legs = "legs";          // elements: ifname
inline constexpr char const* addresses4 = "hosts4";  // elements: ifname . IPv4 address
inline constexpr char const* addresses6 = "hosts6";  // elements: ifname . IPv6 address
}  // namespace nft

// An address of the host at which an interface reaches only the responder.
struct FilteredAddress {
    std::string ifname;
    IpAddress address;
    bool operator==(FilteredAddress const&) const = default;
};

struct PacketFilter {
    std::vector<std::string> legs;  // interfaces that reach nothing of the host beside it
    std::vector<FilteredAddress> addresses;
};

// Empty where there is no such table, or a kernel without nftables.
[[nodiscard]] Result<PacketFilter> read_packet_filter(Deadline deadline);

// --- parsing ---

// The keys of the elements in one NFT_MSG_NEWSETELEM, as they are.
[[nodiscard]] std::vector<ByteView> parse_set_elements(ByteView payload);
// A key's front: IFNAMSIZ bytes.
[[nodiscard]] std::optional<std::string> parse_ifname_key(ByteView key);
[[nodiscard]] std::optional<FilteredAddress> parse_address_key(ByteView key);

}  // namespace vfmgr
