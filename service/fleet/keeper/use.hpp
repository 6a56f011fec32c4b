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
// The same for all hosts. A host that is away keeps what it had when it was last reached: it may
// have it still.
[[nodiscard]] HeldByHost held_by_all(InventoryView const& view);

// The fleet by hosts: of each its blocks, and the claims that it has or had or that are in its
// blocks. desired_identities() and uses_of() of a host need no more of the fleet.
[[nodiscard]] std::map<std::string, Snapshot, std::less<>> by_host(Snapshot const& fleet);

// How a host uses one kind of identity; each network's addresses are a kind of their own.
struct KindUse {
    IdentityKind kind = IdentityKind::mac;
    std::string network{};
    IdentityUse use{};
};
// Returns the use of each kind that the host's VFs can need: MACs for Ethernet, GUIDs for
// InfiniBand, and addresses for each network that the host carries and the fleet has ranges for.
[[nodiscard]] std::vector<KindUse> uses_of(HostDocuments const& documents, Identities const& ranges,
                                           Snapshot const& fleet, std::string_view host);

// Returns the kinds that the host runs out of. `fleet` may be the host's part of by_host().
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
