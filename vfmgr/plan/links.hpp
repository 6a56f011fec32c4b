// SPDX-License-Identifier: Apache-2.0
// The host interfaces of a PF: which links, addresses, peers and RDMA link its attachments need,
// and the steps from the observed state to that. Pure.
#pragma once

#include <map>
#include <vector>

#include "api/types/verification.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct DesiredPeer {
    MacAddress mac;
    IpAddress source;
    bool guest_plane = false;
};

struct DesiredInterface {
    std::uint32_t mtu = 0;
    std::vector<IpAddress> addresses;
    std::map<IpAddress, DesiredPeer> peers;
};

struct DesiredLinks {
    bool up = false;
    std::uint32_t mtu = 0;
    bool rxe = false;
    std::map<InterfaceId, DesiredInterface> interfaces;  // always holds the untagged one
};

// Returns what `attachments`, all on the PF at `address`, need. Without attachments, that is the
// base.
[[nodiscard]] DesiredLinks desired_links(PciAddress const& address, Networks const& networks,
                                         PfBase const& base,
                                         std::vector<Attachment> const& attachments);

// Refuses a port of a bond or bridge: what it receives goes to the bond or bridge, not to the
// host's IP stack, so such a PF has no interface into a network. Its VFs can be attached without a
// network.
[[nodiscard]] Result<void> require_own_interface(PfInfo const& pf, Network const& network);

// Returns the listeners that a VM in `network` would reach besides the responder: RDMA CM has one
// UDP port for all listeners, so no packet filter can tell them apart.
[[nodiscard]] std::vector<RdmaListener> reached_listeners(PfState const& pf,
                                                          Networks const& networks,
                                                          Network const& network);
// "rping (pid 812) listens with RDMA CM on every address of rxe0, port 7174".
[[nodiscard]] std::string sentence(RdmaListener const& listener, PfInfo const& pf);

// Returns the steps that add what is missing, in the order in which they can be performed.
[[nodiscard]] std::vector<Step> links_up(PfState const& pf, DesiredLinks const& needed,
                                         PfBase const& base);
// Returns those of these steps that close the host again where its filter is gone, and no others.
[[nodiscard]] std::vector<Step> links_closed(PfState const& pf, DesiredLinks const& needed,
                                             PfBase const& base);
// A link that the steps set up gets its carrier while the steps after it run. Adds the wait for it:
// before drivers are given rates, which some refuse without a carrier
// (vfmgr/kernel/KERNEL.md#pfs-that-are-down), or else after a VM has got its VF, so that an
// attachment is not done while its port has no link.
void await_carrier(std::vector<Step>& steps);
// Adds what must be done before VFs are made for attachments, which need the PF up anyway.
void raise_for_vfs(std::vector<Step>& steps, PfState const& pf);
// Returns removals of what vfmgr made and no attachment uses any more.
[[nodiscard]] std::vector<Step> links_down(PfState const& pf, DesiredLinks const& needed,
                                           Networks const& networks, PfBase const& base);

[[nodiscard]] PfBase base_of(PfState const& pf);
// Returns the attachments on a PF, without the one with id `except`.
[[nodiscard]] std::vector<Attachment> attachments_on(DesiredState const& desired,
                                                     PciAddress const& pf, std::string_view except);
// Returns the attachments on a PF that no operation is making or ending now, by VF.
[[nodiscard]] std::vector<Attachment> attached_on(DesiredState const& desired,
                                                  PciAddress const& pf);

// Decides whether traffic from a VF to another responder leaves the NIC. Pure.

// Decides by the responder's MAC: internal_switch when it belongs to one of this host's PFs or VFs,
// wire when it belongs to none. nullopt when that is not known: the responder has no MAC, or the
// MAC of some VF is not reported.
[[nodiscard]] std::optional<TestPath> path_to(std::optional<MacAddress> const& responder,
                                              HostView const& host);

}  // namespace vfmgr
