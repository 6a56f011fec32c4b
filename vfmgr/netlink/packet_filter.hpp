// SPDX-License-Identifier: Apache-2.0
// What vfmgr's own packet filter holds: sets and rules of nftables, read as `nft list ruleset`
// does. It is written by nft(8) (kernel/leg_filter.hpp). Free functions; any thread.
#pragma once

#include <map>

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// The tables, of the families inet and netdev, and their sets. The filter's rules name them.
namespace nft {
inline constexpr char const* table = "vfmgr";
inline constexpr char const* legs = "legs";          // elements: ifname
inline constexpr char const* addresses4 = "hosts4";  // elements: ifname . IPv4 address
inline constexpr char const* addresses6 = "hosts6";  // elements: ifname . IPv6 address
inline constexpr char const* vms = "vms";            // elements: ifname . MAC; of either table
// Of netdev. Elements: ifname . MAC . the VM's address . the responder's
inline constexpr char const* talks4 = "talks4";
inline constexpr char const* talks6 = "talks6";
}  // namespace nft

// An address of the host at which an interface reaches only the responder.
struct FilteredAddress {
    std::string ifname;
    IpAddress address;
    bool operator==(FilteredAddress const&) const = default;
};

// A VM that reaches only the responder there, from only this address, whatever it sends.
struct FilteredVm {
    std::string ifname;
    MacAddress mac;
    IpAddress address;
    IpAddress responder;
    bool operator==(FilteredVm const&) const = default;
};

struct PacketFilter {
    std::vector<std::string> legs;  // interfaces that reach nothing of the host beside it
    std::vector<FilteredAddress> addresses;
    std::vector<FilteredVm> vms;
    std::map<std::string, std::size_t> rules;  // how many, by chain: "inet input", "netdev vm"
};

// Empty where there is no such table, or a kernel without nftables.
[[nodiscard]] Result<PacketFilter> read_packet_filter(Deadline deadline);

// Hears of each change of vfmgr's own tables, by whomever, and not of the many of others'. Owned by
// one thread.
class FilterMonitor {
  public:
    // Nothing on a kernel without nftables.
    [[nodiscard]] static Result<std::optional<FilterMonitor>> open();

    // Readable: take() has something to take.
    [[nodiscard]] int fd() const { return nl_socket_get_fd(socket_.get()); }
    // Takes all that is there. True when something of it was about vfmgr's own tables, or was lost.
    [[nodiscard]] bool take();

  private:
    explicit FilterMonitor(NlSocketHandle socket) : socket_(std::move(socket)) {}

    NlSocketHandle socket_;
};

// --- parsing ---

// Of a datagram of the group nftables: whether it is about vfmgr's own tables.
[[nodiscard]] bool tells_of_our_filter(ByteView datagram);

// The keys of the elements in one NFT_MSG_NEWSETELEM, as they are.
[[nodiscard]] std::vector<ByteView> parse_set_elements(ByteView payload);
// A key's front: IFNAMSIZ bytes.
[[nodiscard]] std::optional<std::string> parse_ifname_key(ByteView key);
[[nodiscard]] std::optional<FilteredAddress> parse_address_key(ByteView key);
[[nodiscard]] std::optional<FilteredVm> parse_vm_key(ByteView key);
// Of one NFT_MSG_NEWTABLE: whether it is vfmgr's, and filters.
[[nodiscard]] bool is_our_table_awake(ByteView payload);
// The chain of one NFT_MSG_NEWRULE.
[[nodiscard]] std::optional<std::string> parse_rule_chain(ByteView payload);

}  // namespace vfmgr
