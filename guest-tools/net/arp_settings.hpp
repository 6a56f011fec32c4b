// SPDX-License-Identifier: Apache-2.0
// How a netdev of this VM answers ARP, and what it says in it. Any thread; a netdev is that of the
// thread's network.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "api/types/problem.hpp"

namespace vfmgr::guest {

using ArpSettings = std::map<std::string, std::string>;  // "arp_ignore": "1"

// Several NICs on one network are the rule for RDMA, and Linux then takes each for a way to all of
// the machine's addresses: whichever answers first gets the traffic, which the hardware of the
// other one is waiting for. As Mellanox's arp_announce_conf.sh does for all NICs, here for the VF.
// - arp_ignore 1: answers only for addresses of the NIC that was asked.
// - arp_announce 2: asks with an address of the NIC that asks; another NIC's would be learned with
//   this one's MAC.
// The kernel takes the greater of conf/all and conf/IFNAME for both [src inetdevice.h
// IN_DEV_MAXCONF]: whatever `all` is, the VF does at least this.
// Not rp_filter, which is often advised: the strict one (1) drops what comes by another NIC than an
// answer would leave by, and an answer from the VF's address leaves by the VF (source_route.hpp).
inline ArpSettings const arp_settings_of_vf{{"arp_announce", "2"}, {"arp_ignore", "1"}};

// `proc` is /proc. What is there now, for the settings that a VF needs.
[[nodiscard]] Result<ArpSettings> read_arp_settings(std::filesystem::path const& proc,
                                                    std::string const& ifname);
// Success when the netdev has gone.
[[nodiscard]] Result<void> write_arp_settings(std::filesystem::path const& proc,
                                              std::string const& ifname,
                                              ArpSettings const& settings);

}  // namespace vfmgr::guest
