// SPDX-License-Identifier: Apache-2.0
// What a host is configured to have, as one document that can be kept in a file and applied again.
// Attachments and reservations are not in it: clients make and end them. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/types/identities.hpp"
#include "api/types/network.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf.hpp"
#include "api/types/pool.hpp"
#include "api/types/rdma.hpp"

namespace vfmgr {

struct DesiredDocument {
    std::map<std::string, PfSpec> pfs;               // by PCI address, as to_string() writes it
    std::map<std::string, Network> networks;         // by name; the networks themselves have none
    std::map<std::string, Pool> pools;               // the same
    std::map<std::string, RdmaLinkSpec> rdma_links;  // by name
    std::optional<Identities> identities;            // absent: they are left alone
    bool operator==(DesiredDocument const&) const = default;
};

// A difference between what is desired and a document.
struct DesiredChange {
    std::string pointer;     // into the document (RFC 6901): "/networks/train/mtu"
    std::string now;         // JSON; null: there is none
    std::string then;        // JSON; null: there will be none
    std::string sentence{};  // "network train: mtu becomes 9000 (now 1500)"
    bool operator==(DesiredChange const&) const = default;
};

// The answer to a dry run of a document.
struct DesiredDryRun {
    std::vector<DesiredChange> changes;  // of what is desired
    PlanView plan;                       // on the host, which may have drifted
};

extern template struct Json<DesiredDryRun>;
extern template struct Json<DesiredDocument>;
extern template struct Json<DesiredChange>;

}  // namespace vfmgr
