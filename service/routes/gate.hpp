// SPDX-License-Identifier: Apache-2.0
// An API's gate: authenticates each request by token, by client certificate or by the local user,
// limits its rate, logs and audits it.
#pragma once

#include <functional>
#include <memory>

#include "service/auth/rules_in_force.hpp"
#include "service/auth/sessions.hpp"
#include "service/auth/token_uses.hpp"
#include "service/routes/dispatch.hpp"

namespace vfmgr {

// Those whom a daemon knows besides its rules. Neither is null.
struct Access {
    std::shared_ptr<std::map<std::string, Token> const> tokens;  // by each secret's SHA-256
    std::shared_ptr<Tenants const> tenants;
};

// Takes the entries of the audit. Any thread.
struct Audit {
    std::function<void(AuditEntry)> add;
    std::function<void(AuditEntry const&)> count;  // one of many that have no entries of their own
};

struct GateSeams {
    RulesInForce const& rules;
    std::function<Access()> access;  // as it is now; returns at once
    Audit audit;
    TokenUses& uses;
    Sessions const& sessions;
    Clock& clock;
    Program program{};
    // Of a host: the fleet that it is in, and what a replica says of a request. Empty: of a fleet.
    std::function<std::shared_ptr<FleetTrust const>()> fleet{};  // null: it is in none
    std::function<void(Time)> fleet_is_here{};                   // a replica has authenticated
};

// What the seams refer to outlives it. Its functions run on the io thread, except `answered`, which
// any thread may call.
[[nodiscard]] Gate api_gate(GateSeams const& seams);

// Where a request came from, whoever sent it: "address:10.0.0.9", "uid:1000".
[[nodiscard]] std::string origin_of(http::Peer peer);

}  // namespace vfmgr
