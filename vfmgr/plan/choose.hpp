// SPDX-License-Identifier: Apache-2.0
// The choices a lease leaves to vfmgr: which VF, which MAC or GUID, which address. Pure and stable:
// the same question gets the same answer, so a dry run tells the truth.
#pragma once

#include <optional>
#include <string_view>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// `wanted` if it is free, otherwise the lowest free VF. Points into `pf`.
[[nodiscard]] Result<VfState const*> choose_vf(HostView const& host, DesiredState const& desired,
                                               PfState const& pf,
                                               std::optional<std::uint16_t> wanted);

// Locally administered, made of the host's seed, the VM and the PF, so that a VM keeps its MAC when
// it gets a VF again; counted on while somebody on this host has it.
[[nodiscard]] MacAddress choose_mac(HostView const& host, DesiredState const& desired,
                                    VfId const& vf, std::string_view vm_uuid,
                                    std::string_view host_seed);

// Refuses a MAC that another VF, lease or PF has. Two VFs with one MAC lose frames silently.
[[nodiscard]] Result<void> check_mac(HostView const& host, DesiredState const& desired,
                                     VfId const& vf, MacAddress const& mac);

// The same for an InfiniBand VF's node and port: an EUI-64 with the bit that no maker's has.
[[nodiscard]] Guid choose_guid(HostView const& host, DesiredState const& desired, VfId const& vf,
                               std::string_view vm_uuid, std::string_view host_seed);

// Refuses a GUID that another VF or lease has: a subnet manager takes two ports with one for one.
[[nodiscard]] Result<void> check_guid(HostView const& host, DesiredState const& desired,
                                      VfId const& vf, Guid const& guid);

[[nodiscard]] Result<IpAddress> choose_address(DesiredState const& desired, PciAddress const& pf,
                                               Network const& network,
                                               std::optional<IpAddress> const& wanted);

}  // namespace vfmgr
