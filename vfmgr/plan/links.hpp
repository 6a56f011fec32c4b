// SPDX-License-Identifier: Apache-2.0
// The host's legs of a PF: which links, addresses, peers and RDMA link its leases need, and the
// steps that lead there from what is. Pure.
#pragma once

#include <map>
#include <vector>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct WantedPeer {
    MacAddress mac;
    IpAddress source;
    bool operator==(WantedPeer const&) const = default;
};

struct WantedLeg {
    std::uint32_t mtu = 0;
    std::vector<IpAddress> addresses;
    std::map<IpAddress, WantedPeer> peers;
    bool operator==(WantedLeg const&) const = default;
};

struct WantedLinks {
    bool up = false;
    std::uint32_t mtu = 0;
    bool rxe = false;
    std::map<LegId, WantedLeg> legs;  // always holds the untagged one
    bool operator==(WantedLinks const&) const = default;
};

// What `leases` (all on one PF, whose spec and base are `pf`) need. No leases: the base again.
[[nodiscard]] WantedLinks wanted_links(PciAddress const& address, PfSpec const& spec,
                                       PfBase const& base, std::vector<Attachment> const& leases);

// A bond or bridge takes what its part receives before the host's IP sees it: such a PF has no leg
// into a network. Its VFs can be lent without one.
[[nodiscard]] Result<void> require_own_leg(PfInfo const& pf, Network const& network);

// Those whom a VM in `network` would reach beside the responder: RDMA CM has one UDP port for all
// who listen, so that no packet filter keeps them apart.
[[nodiscard]] std::vector<RdmaListener> reached_listeners(PfState const& pf, PfSpec const& spec,
                                                          Network const& network);
// "rping (pid 812) listens by RDMA CM on every address of rxe0, port 7174".
[[nodiscard]] std::string sentence(RdmaListener const& listener, PfInfo const& pf);

// Additions, in the order in which they can be made.
[[nodiscard]] std::vector<Step> links_up(PfState const& pf, WantedLinks const& want,
                                         PfBase const& base);
// Those of them that close the host again where its filter is gone, and add nothing else.
[[nodiscard]] std::vector<Step> links_closed(PfState const& pf, WantedLinks const& want,
                                             PfBase const& base);
// Removals of what vfmgr made and nobody uses any more.
[[nodiscard]] std::vector<Step> links_down(PfState const& pf, WantedLinks const& want,
                                           PfSpec const& spec, PfBase const& base);

[[nodiscard]] PfBase base_of(PfState const& pf);
// Leases on a PF, without the one named `except`.
[[nodiscard]] std::vector<Attachment> leases_on(DesiredState const& desired, PciAddress const& pf,
                                                std::string_view except);
// Those that no operation makes or ends now, by VF.
[[nodiscard]] std::vector<Attachment> attached_leases(DesiredState const& desired,
                                                      PciAddress const& pf);

}  // namespace vfmgr
