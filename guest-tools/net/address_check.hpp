// SPDX-License-Identifier: Apache-2.0
// How a netdev of this VM answers ARP, and which addresses its requests use. Any thread; a netdev
// is that of the thread's network namespace.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

using ArpSettings = std::map<std::string, std::string>;  // "arp_ignore": "1"

// With RDMA, several NICs on one network are usual. Linux then treats each as a way to all of the
// machine's addresses: the NIC that answers first gets the traffic for which the other one's
// hardware is waiting. Mellanox's arp_announce_conf.sh sets this for all NICs, vf-guest for the VF.
// - arp_ignore 1: answers only for addresses of the NIC that received the request.
// - arp_announce 2: requests with an address of the sending NIC; another NIC's would be learned
//   with this one's MAC.
// The kernel uses the greater of conf/all and conf/IFNAME for both [src inetdevice.h
// IN_DEV_MAXCONF]: whatever `all` is, the VF does at least this.
// Does not set rp_filter, which is often advised: strict mode (1) drops packets that arrive on a
// NIC other than the one that a reply would leave by, and a reply from the VF's address leaves by
// the VF (source_route.hpp).
inline ArpSettings const arp_settings_of_vf{{"arp_announce", "2"}, {"arp_ignore", "1"}};

// `proc` is /proc. Returns the current values of the settings that a VF needs.
[[nodiscard]] Result<ArpSettings> read_arp_settings(std::filesystem::path const& proc,
                                                    std::string const& ifname);
// Succeeds when the netdev has gone.
[[nodiscard]] Result<void> write_arp_settings(std::filesystem::path const& proc,
                                              std::string const& ifname,
                                              ArpSettings const& settings);

// Checks an address before a session: one that is missing, or that another machine has as well,
// would otherwise only look like a path that loses packets. One thread; takes a third of a second.

// not_found: the netdev no longer has the attachment's address. conflict: another machine answers
// for it (RFC 5227's probe, IPv4 only); the detail has its MAC.
[[nodiscard]] Result<void> check_address(GuestAttachment const& attachment,
                                         std::string const& ifname);

// Checks before the netdev has the address, so no other machine loses traffic: conflict, as above.
[[nodiscard]] Result<void> check_unclaimed(IpAddress const& address, Netdev const& netdev,
                                           std::vector<Netdev> const& own);

// Returns the MAC that claims `address` in this ARP packet, which has no Ethernet header.
[[nodiscard]] std::optional<MacAddress> arp_claim(ByteView packet, IpAddress const& address);

}  // namespace vfmgr::guest
