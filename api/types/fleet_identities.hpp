// SPDX-License-Identifier: Apache-2.0
// Identities of a fleet, as its API shows them: who has which, and which are claimed. Values; any
// thread.
#pragma once

#include <optional>
#include <string>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

enum class IdentityKind { mac, guid, address };

enum class IdentityState {
    held,       // by its owner's attachment
    reserved,   // claimed by a host, and no attachment of it was reported
    giving_up,  // its host is to give it up
    given_up,   // nobody may have it until another host has claimed it
    foreign,    // of an attachment, and the fleet has given it to nobody
    contested,  // of attachments of two hosts, or of a host whose it is not
};
// Whose it is by what.
enum class IdentitySource { none, block, claim };

struct FleetIdentity {
    IdentityKind kind = IdentityKind::mac;
    std::string identity;                  // the address alone
    std::optional<std::string> network{};  // of an address
    std::string host;                      // whose attachment has it, or whose it is
    std::optional<std::string> vm{};       // the name of the attachment's VM
    std::optional<std::string> vm_uuid{};
    std::optional<Time> since{};
    std::optional<std::string> public_key{};  // of the host, when it got it: SHA-256, hex
    IdentitySource source = IdentitySource::none;
    IdentityState state = IdentityState::held;
    bool operator==(FleetIdentity const&) const = default;
};

// Claims one for a host, for requests that name it. Exactly one of mac, guid and address.
struct FleetClaimRequest {
    std::optional<MacAddress> mac{};
    std::optional<Guid> guid{};
    std::optional<IpAddress> address{};
    std::optional<std::string> network{};  // with an address
    std::string host;
    std::optional<std::string> vm{};  // UUID of the VM that it is for
    bool operator==(FleetClaimRequest const&) const = default;
};

extern template struct Json<FleetIdentity>;
extern template struct Json<FleetClaimRequest>;

}  // namespace vfmgr
