// SPDX-License-Identifier: Apache-2.0
// What the daemon says of itself, and who may use it: its readiness, tokens, sessions, the
// audit. Values; any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

struct About {
    std::string name;
    std::string version;
    std::string api;                    // "v1"
    std::vector<std::string> features;  // what this version can do
    std::vector<std::string> links;     // paths
};

struct ReadinessView {
    bool ready = false;
    std::vector<std::string> not_ready;  // names of what is in the way
    // Differences between host and desired state; absent: not for a caller without a role.
    std::optional<std::uint64_t> drift;
};

// What a problem's `type` leads to, from api/problems.md.
struct ProblemExplanation {
    std::string type;
    std::string code;
    std::string title;
    std::uint16_t status = 0;
    std::string cause;
    std::string remedy;
};

// Each role includes those before it: read; attach and detach; PF specs, quarantine, tokens.
enum class Role { viewer, operator_, admin };

inline constexpr std::chrono::hours token_lifetime_default{24 * 90};
inline constexpr std::chrono::hours token_lifetime_max{24 * 3650};

// The body of a request for a token. At most one of the last four says when it expires.
struct TokenRequest {
    Role role = Role::viewer;
    std::string description{};
    // Nouns of the API, such as "attachments"; absent: all that the role may.
    std::optional<std::vector<std::string>> scopes{};
    std::optional<std::uint32_t> days{};
    std::optional<std::uint32_t> expires_in_seconds{};
    std::optional<Time> expires_at{};
    bool never_expires = false;
    std::optional<std::string> tenant{};  // it may do what this tenant may; never an admin's
};

// The body of a request for a token's next secret.
struct TokenRotation {
    std::uint32_t grace_seconds = 0;  // for which the present one stays valid
};

// A token without its secret.
struct TokenView {
    std::string id;
    std::string role;  // as it is stored
    std::string description;
    Time created_at{};
    std::optional<Time> expires_at;
    bool never_expires = false;
    std::optional<std::vector<std::string>> scopes{};
    std::optional<Time> rotated_at{};
    std::optional<Time> last_used_at{};
    std::optional<std::string> last_used_from{};  // address:10.0.0.9, uid:1000
    std::optional<std::string> tenant{};
};

// The answer that creates a token or its next secret, and the only one with the secret.
struct NewTokenView {
    TokenView view;
    std::string token;
};

// The answer that begins a session, and the only one with its token.
struct NewSession {
    std::string who;  // the principal that it is of: token:<id>, cert:<name>
    Role role = Role::viewer;
    std::optional<std::vector<std::string>> scopes{};
    std::optional<std::string> tenant{};
    Time expires_at{};
    std::string token;
};

struct AuditEntry {
    Time at{};
    std::string who;  // uid:0, token:<id>, cert:<name>, address:10.0.0.9
    std::string request_id;
    std::string action;  // "POST /v1/attachments?dry_run=true"
    std::string subject;
    std::string outcome;         // the status: "202"
    bool refused = false;        // a status of 400 or above; kept apart from the others
    std::uint64_t requests = 1;  // above 1: the entry stands for one minute's requests that have
                                 // no entries of their own
    std::string from{};  // uid:0, address:10.0.0.9; empty: from several places, or not known
    std::optional<std::string> plan_digest{};  // of the plan that was admitted, or was shown
    std::optional<std::string> operation{};    // the one that began
    bool operator==(AuditEntry const&) const = default;
};

extern template struct Json<About>;
extern template struct Json<ReadinessView>;
extern template struct Json<ProblemExplanation>;
extern template struct Json<TokenRequest>;
extern template struct Json<TokenRotation>;
extern template struct Json<TokenView>;
extern template struct Json<NewTokenView>;
extern template struct Json<NewSession>;
extern template struct Json<AuditEntry>;

}  // namespace vfmgr
