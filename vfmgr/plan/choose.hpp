// SPDX-License-Identifier: Apache-2.0
// Makes the choices that an attachment leaves to vfmgr: which VF, which MAC or GUID, which address.
// Pure and stable: equal input gives an equal choice, so a dry run shows what the real run does.
#pragma once

#include <optional>
#include <string_view>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Returns `requested` if it is free, otherwise the lowest free VF. Points into `pf`.
[[nodiscard]] Result<VfState const*> choose_vf(HostView const& host, DesiredState const& desired,
                                               PfState const& pf,
                                               std::optional<std::uint16_t> requested);

// Returns a locally administered MAC, derived from the host's seed, the VM and the PF: a VM keeps
// its MAC when it gets a VF again. Tries the next one while a VF or PF of this host has it.
[[nodiscard]] MacAddress choose_mac(HostView const& host, DesiredState const& desired,
                                    VfId const& vf, std::string_view vm_uuid,
                                    std::string_view host_seed);

// Refuses a MAC that another VF, attachment or PF has. Two VFs with one MAC lose frames silently.
[[nodiscard]] Result<void> check_mac(HostView const& host, DesiredState const& desired,
                                     VfId const& vf, MacAddress const& mac);

// Does the same for an InfiniBand VF's node and port: an EUI-64 with the local bit, which no
// vendor's has.
[[nodiscard]] Guid choose_guid(HostView const& host, DesiredState const& desired, VfId const& vf,
                               std::string_view vm_uuid, std::string_view host_seed);

// Refuses a GUID that another VF or attachment has: a subnet manager takes two ports with one GUID
// for one port.
[[nodiscard]] Result<void> check_guid(HostView const& host, DesiredState const& desired,
                                      VfId const& vf, Guid const& guid);

[[nodiscard]] Result<IpAddress> choose_address(DesiredState const& desired, PciAddress const& pf,
                                               Network const& network,
                                               std::optional<IpAddress> const& requested);

}  // namespace vfmgr
