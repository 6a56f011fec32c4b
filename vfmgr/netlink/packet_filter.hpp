// SPDX-License-Identifier: Apache-2.0
// Reads vfmgr's own packet filter: sets and rules of nftables, as `nft list ruleset` does. nft(8)
// writes it (kernel/interface_filter.hpp). Free functions; any thread.
#pragma once

#include <map>

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// The tables, of the families inet and netdev, and their sets. The filter's rules use these names.
namespace nft {
inline constexpr char const* table = "vfmgr";
inline constexpr char const* interfaces = "host_interfaces";  // elements: ifname
inline constexpr char const* addresses4 = "hosts4";           // elements: ifname . IPv4 address
inline constexpr char const* addresses6 = "hosts6";           // elements: ifname . IPv6 address
inline constexpr char const* vms = "vms";  // elements: ifname . MAC; in either table
// In netdev. Elements: ifname . MAC . the VM's address . the responder's
inline constexpr char const* talks4 = "talks4";
inline constexpr char const* talks6 = "talks6";
// In inet, of the same elements: those for whom the guest plane's TCP port is open.
inline constexpr char const* guests4 = "guests4";
inline constexpr char const* guests6 = "guests6";
}  // namespace nft

// An address of the host at which an interface reaches only the responder.
struct FilteredAddress {
    std::string ifname;
    IpAddress address;
    bool operator==(FilteredAddress const&) const = default;
};

// A VM that can reach only the responder there, and only from this address, whatever it sends.
struct FilteredVm {
    std::string ifname;
    MacAddress mac;
    IpAddress address;
    IpAddress responder;
    bool guest_plane = false;  // its TCP port is open to this VM
    bool operator==(FilteredVm const&) const = default;
};

struct PacketFilter {
    std::vector<std::string> interfaces;  // interfaces that reach nothing else of the host
    std::vector<FilteredAddress> addresses;
    std::vector<FilteredVm> vms;
    std::map<std::string, std::size_t> rules;  // count by chain: "inet input", "netdev vm"
};

// Empty where there is no such table, or on a kernel without nftables.
[[nodiscard]] Result<PacketFilter> read_packet_filter(Deadline deadline);

// Reports every change of vfmgr's own tables, by any program, and skips the many of other tables.
// Owned by one thread.
class FilterMonitor {
  public:
    // Nothing on a kernel without nftables.
    [[nodiscard]] static Result<std::optional<FilterMonitor>> open();

    // Readable: take() has input.
    [[nodiscard]] int fd() const { return nl_socket_get_fd(socket_.get()); }
    // Takes all pending events. True when one concerned vfmgr's own tables, or was lost.
    [[nodiscard]] bool take();

  private:
    explicit FilterMonitor(NlSocketHandle socket) : socket_(std::move(socket)) {}

    NlSocketHandle socket_;
};

// --- parsing ---

// Whether a datagram of the nftables group concerns vfmgr's own tables.
[[nodiscard]] bool concerns_our_filter(ByteView datagram);

// Returns the raw keys of the elements in one NFT_MSG_NEWSETELEM.
[[nodiscard]] std::vector<ByteView> parse_set_elements(ByteView payload);
// Parses a key's front: IFNAMSIZ bytes.
[[nodiscard]] std::optional<std::string> parse_ifname_key(ByteView key);
[[nodiscard]] std::optional<FilteredAddress> parse_address_key(ByteView key);
[[nodiscard]] std::optional<FilteredVm> parse_vm_key(ByteView key);
// Whether one NFT_MSG_NEWTABLE is vfmgr's table, and filters.
[[nodiscard]] bool is_our_table_awake(ByteView payload);
// Returns the chain of one NFT_MSG_NEWRULE.
[[nodiscard]] std::optional<std::string> parse_rule_chain(ByteView payload);

}  // namespace vfmgr
