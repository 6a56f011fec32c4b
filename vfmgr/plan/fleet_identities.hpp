// SPDX-License-Identifier: Apache-2.0
// What a fleet lets its host hand out to VFs: decided where identities have a generation, and
// nothing is refused where they have none. What VFs have already is theirs, whatever the fleet
// says. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// "fleet 3f9c…", as sentences name it; "the fleet" of a host that is in none.
[[nodiscard]] std::string fleet_name(DesiredState const& desired);

// Refuses what a request may not name: what is not in the ranges, or given up, unless it is
// claimed. conflict, in words that a tenant may read too.
[[nodiscard]] Result<void> require_handed_out(DesiredState const& desired, MacAddress const& mac);
[[nodiscard]] Result<void> require_handed_out(DesiredState const& desired, Guid const& guid);
[[nodiscard]] Result<void> require_handed_out(DesiredState const& desired,
                                              NetworkAddress const& address);
// Whether one of the ranges may be chosen: neither given up nor claimed.
[[nodiscard]] bool may_be_chosen(Identities const& identities, MacAddress const& mac);
[[nodiscard]] bool may_be_chosen(Identities const& identities, Guid const& guid);
[[nodiscard]] bool may_be_chosen(Identities const& identities, NetworkAddress const& address);

// Judges identities that are to replace those of `desired`. precondition_failed: those in force are
// of a later generation, or these of none. conflict: the same generation would have two contents;
// or something on this host has what they take away, or is about to (`pledged`), and each is named.
[[nodiscard]] Result<void> check_identities(DesiredState const& desired, Identities const& wanted,
                                            std::vector<VfSpec> const& pledged = {});
// As those of a host that is in no fleet: the ranges stay.
[[nodiscard]] Identities without_fleet(Identities identities);
// Returns a sentence for each identity of the attachment that the fleet has not given this host.
[[nodiscard]] std::vector<std::string> foreign_identities(DesiredState const& desired,
                                                          Attachment const& attachment);
// nullopt: without a generation.
[[nodiscard]] std::optional<FreeIdentities> free_identities(HostView const& host,
                                                            DesiredState const& desired);

}  // namespace vfmgr
