// SPDX-License-Identifier: Apache-2.0
// Who has which identity: what etcd says beside what hosts report of their attachments. Where the
// two differ it is evidence, and never a reason to take anything from anybody. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "service/fleet/identities/derive.hpp"
#include "service/fleet/identities/identity.hpp"

namespace vfmgr::fleet {

// An attachment of a host has it.
struct HeldIdentity {
    Identity identity;
    std::string vm;          // its name
    std::string vm_uuid;     // empty with an external holder
    std::string attachment;  // 8 hex digits
    std::optional<Time> since;
};
using HeldByHost = std::map<std::string, std::vector<HeldIdentity>>;

enum class FindingKind {
    foreign,    // in nobody's block and no claim: from before the host joined, or chosen past it
    contested,  // of two hosts, or in the block or claim of another host: two VMs may have it
};
struct IdentityFinding {
    FindingKind kind = FindingKind::foreign;
    Identity identity;
    std::vector<std::string> hosts;  // whose attachments have it, by name
    std::string owner;               // as etcd has it; empty: nobody
    std::string sentence;            // for the quarantine's reason: names hosts and VMs
    bool operator==(IdentityFinding const&) const = default;
};
// By identity. A host of a contested identity is quarantined unless it is the owner.
[[nodiscard]] std::vector<IdentityFinding> findings(Snapshot const& fleet, HeldByHost const& held);

using HolderState = IdentityState;
using HolderSource = IdentitySource;

// A row of `vfctl fleet identities`.
struct Holder {
    Identity identity;
    std::string host;               // whose attachment has it, or whose it is
    std::optional<std::string> vm;  // its name
    std::optional<std::string> vm_uuid;
    std::optional<Time> since;
    std::optional<std::string> certificate;  // the public key of the host, when it got it
    HolderSource source = HolderSource::none;
    HolderState state = HolderState::held;
};
// By identity, then host: each that an attachment has, and each claim. Free ones of blocks are in
// no row.
[[nodiscard]] std::vector<Holder> holders(Snapshot const& fleet, HeldByHost const& held);

}  // namespace vfmgr::fleet
