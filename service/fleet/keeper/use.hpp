// SPDX-License-Identifier: Apache-2.0
// How the hosts use their identities, as they report it: by which the fleet gives them more in
// time, and finds what two of them have. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "service/fleet/identities/blocks.hpp"
#include "service/fleet/identities/holders.hpp"
#include "service/fleet/identities/stored.hpp"
#include "service/fleet/inventory/inventory.hpp"

namespace vfmgr::fleet {

// What the attachments of a host have. An attachment is told by its id, so that whoever acts on it
// can read it again.
[[nodiscard]] std::vector<HeldIdentity> held_by(HostDocuments const& documents);
// Of all hosts. What a host had when it was last reached counts: it may have it still.
[[nodiscard]] HeldByHost held_by_all(InventoryView const& view);

// The fleet by hosts: of each its blocks, and the claims that it has or had or that are in its
// blocks. desired_identities() and uses_of() of a host need no more of the fleet.
[[nodiscard]] std::map<std::string, Snapshot, std::less<>> by_host(Snapshot const& fleet);

// Of one kind, or of one network's addresses.
struct KindUse {
    IdentityKind kind = IdentityKind::mac;
    std::string network{};
    IdentityUse use{};
};
// Of each kind that the host's VFs can need: MACs of Ethernet, GUIDs of InfiniBand, and addresses
// of each network that it carries and the fleet has ranges of.
[[nodiscard]] std::vector<KindUse> uses_of(HostDocuments const& documents, Identities const& ranges,
                                           Snapshot const& fleet, std::string_view host);

// Of which kinds the host has not enough. `fleet` may be the host's part.
[[nodiscard]] std::vector<KindUse> missing_of(HostDocuments const& documents,
                                              Identities const& ranges, Snapshot const& fleet,
                                              std::string_view host);

// What attachments have that is another host's, or of two hosts: not addresses of networks that
// the fleet has no ranges of, which hosts hand out by themselves.
[[nodiscard]] std::vector<IdentityFinding> contested_of(Snapshot const& fleet,
                                                        Identities const& ranges,
                                                        InventoryView const& view);

// "MACs", "addresses of network train"
[[nodiscard]] std::string described(KindUse const& use);

}  // namespace vfmgr::fleet
