// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the members of a VfSpec. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/types/verification.hpp"
#include "api/types/vf.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// True when the driver reports the desired MAC, or its stand-in; false when it reports none.
[[nodiscard]] bool mac_holds(VfSpec const& desired, VfSpec const& reported);

// Decides by name, which is all there is of a requested driver: "vfio-pci", "mlx5_vfio_pci".
[[nodiscard]] bool names_vfio_driver(std::string_view driver);

// Returns the members of `values` that `mask` has: the old values of what will be set.
[[nodiscard]] VfSpec only_members_of(VfSpec const& mask, VfSpec values);
// Returns the members of `desired` whose value is not the one that `now` reports.
[[nodiscard]] VfSpec differing(VfSpec desired, VfSpec const& now);
// The same without those that `now` does not report.
[[nodiscard]] VfSpec reported_to_differ(VfSpec const& desired, VfSpec const& now);
// True when no member differs.
[[nodiscard]] bool holds(VfSpec const& desired, VfSpec const& now);

// Decides whether a VF's figures fell against those of its own earlier runs. Pure.

// Returns one warning for each bandwidth or latency of a passed test of `run` that is clearly worse
// than before. `earlier`: the same VF's runs, the latest first, without `run`. Compares only with
// those that passed over the same path against the same responder: the last 10 that have the
// figure. With fewer than 5 there is no warning.
[[nodiscard]] std::vector<Warning> slower_than_before(Verification const& run,
                                                      std::vector<Verification> const& earlier);

// Makes the choices that an attachment leaves to vfmgr: which VF, which MAC or GUID, which address.
// Pure and stable: equal input gives an equal choice, so a dry run shows what the real run does.

// Which VFs of a PF a request may get.
struct VfChoice {
    std::optional<std::uint16_t> index{};  // this one
    Pool const* pool = nullptr;            // one of the pool's
    std::string reservation{};             // one that this reservation keeps; empty: none of any
};
// True if the selector of PFs and VFs holds this VF; PF facts are holds_pf()'s, in select.hpp.
[[nodiscard]] bool holds_vf(PoolSelectors const& select, VfId const& vf);
// Returns the VF of that index if it is free, otherwise the lowest free VF. Points into `pf`.
[[nodiscard]] Result<VfState const*> choose_vf(HostView const& host, DesiredState const& desired,
                                               PfState const& pf, VfChoice const& choice);
// Returns the VFs that `choice` could get, ascending.
[[nodiscard]] std::vector<std::uint16_t> free_vfs(HostView const& host, DesiredState const& desired,
                                                  PfState const& pf, VfChoice const& choice);

// Returns a locally administered MAC, derived from the host's seed, the VM and the PF: a VM keeps
// its MAC when it gets a VF again. Tries the next one while a VF, PF or other netdev of this host
// or an interface of a VM has it. Chooses within the host's MAC ranges, if it has any;
// limit_exceeded when all of them are taken, and when a fleet has given this host none.
[[nodiscard]] Result<MacAddress> choose_mac(HostView const& host, DesiredState const& desired,
                                            VfId const& vf, std::string_view vm_uuid,
                                            std::string_view host_seed);

// Refuses a MAC that another VF, attachment, PF or netdev has, or an interface of a VM, unless it
// is one of this VM's that awaits the VF. Two VFs with one MAC lose frames silently.
[[nodiscard]] Result<void> check_unique(HostView const& host, DesiredState const& desired,
                                        VfId const& vf, std::string_view vm_uuid,
                                        MacAddress const& mac);
// Refuses one that the host's fleet has not given it, too.
[[nodiscard]] Result<void> check_mac(HostView const& host, DesiredState const& desired,
                                     VfId const& vf, std::string_view vm_uuid,
                                     MacAddress const& mac);

// Does what choose_mac() does, for the GUID of an InfiniBand VF's node or port: an EUI-64 with the
// local bit set, which no vendor's GUID has.
[[nodiscard]] Result<Guid> choose_guid(HostView const& host, DesiredState const& desired,
                                       VfId const& vf, std::string_view vm_uuid,
                                       std::string_view host_seed);

// Refuses a GUID that another VF, attachment or PF has: a subnet manager takes two ports with one
// GUID for one port.
[[nodiscard]] Result<void> check_unique(HostView const& host, DesiredState const& desired,
                                        VfId const& vf, Guid const& guid);
// Refuses one that the host's fleet has not given it, too.
[[nodiscard]] Result<void> check_guid(HostView const& host, DesiredState const& desired,
                                      VfId const& vf, Guid const& guid);

// Refuses an address that no VM of the network can have, or that another VM of this host has, on
// whatever PF.
[[nodiscard]] Result<void> check_unique(DesiredState const& desired, Network const& network,
                                        IpAddress const& address);
// The network's ranges, as far as they are this host's to hand out.
[[nodiscard]] std::vector<Range<IpAddress>> ranges_to_hand_out(Identities const& identities,
                                                               Network const& network);
// Returns `requested` if a VM of the network can have it, and this host's fleet has given it,
// otherwise the first free address of the network's ranges.
[[nodiscard]] Result<IpAddress> choose_address(DesiredState const& desired, Network const& network,
                                               std::optional<IpAddress> const& requested);

}  // namespace vfmgr
