// SPDX-License-Identifier: Apache-2.0
// Maps a connection and its headers to a name and a role: by the unix socket's user, by the client
// certificate, or by the bearer token of an API client or of a session. Values and pure functions,
// except resolve_roles() and make_token(); any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/daemon.hpp"
#include "api/types/time.hpp"
#include "api/types/token.hpp"
#include "service/program.hpp"
#include "vfmgr/plan/desired_state.hpp"

namespace vfmgr {

// The caller.
struct Principal {
    // "uid:0", "token:<id>", "cert:<name>", "fleet:<replica>"; "fleet:token:<id>" of a client there
    std::string name;
    Role role = Role::viewer;
    std::optional<std::vector<std::string>> scopes{};  // nouns; absent: all that the role may
    std::string token_sha256{};                        // of the token's secret; empty without one
    std::shared_ptr<DesiredTenant const> tenant{};     // as it is now; null: of no tenant
    std::string session_sha256{};                      // of the session's secret; as above
    // The replica of this host's fleet that sent the request, for itself or for a client there.
    std::optional<std::string> fleet_replica{};
};

// By what this host knows its fleet: the certificates of that CA are the fleet's, and nobody
// else's.
struct FleetTrust {
    std::string fleet;      // its UUID
    std::string authority;  // as PeerCertificate::authority
    bool operator==(FleetTrust const&) const = default;
};

// What a token or a client certificate began, for a person in a browser: whoever sends its secret
// is the principal that began it, as long as that token is valid, or on connections that show that
// certificate.
struct Session {
    std::string name;          // of the principal
    std::string token_sha256;  // of the token that began it; empty: a certificate did
    Time expires_at{};
    std::uint64_t number = 0;  // in the order in which they began
};
using OpenSessions = std::map<std::string, Session>;  // by the secret's SHA-256

// What the configuration gives the name in a certificate.
struct ClientRole {
    Role role = Role::viewer;
    std::optional<std::string> tenant{};

    ClientRole() = default;
    ClientRole(Role of, std::optional<std::string> whose = {})
        : role(of), tenant(std::move(whose)) {}
    bool operator==(ClientRole const&) const = default;
};
[[nodiscard]] std::string to_string(ClientRole const& client);  // "operator of tenant blue"

// Roles of the unix socket's users, and of clients with a certificate. A user with several roles
// has the highest; uid 0 is always an admin. A client whose names have different roles or tenants
// has none: which one was meant is not known. Who has no role may do nothing.
struct RoleRules {
    std::map<std::uint32_t, Role> uids;
    std::map<std::uint32_t, Role> gids;
    std::map<std::string, ClientRole> clients{};  // by the whole name in the certificate
    Program program{};                            // whose rules they are
};

struct ResolvedRoles {
    RoleRules rules;
    std::vector<std::string> unknown_groups;  // groups that this host lacks; they have no members
};
// Resolves the groups' ids on the host: at start and on reload, never for a request.
[[nodiscard]] ResolvedRoles resolve_roles(std::map<std::string, Role> const& groups,
                                          std::map<std::uint32_t, Role> const& uids,
                                          std::map<std::string, ClientRole> const& clients = {});

// 256 random bits after "vfm_". The secret is shown once, to its creator; only its SHA-256 is kept.
struct NewToken {
    std::string secret;  // "vfm_" and 64 hex digits
    std::string id;      // 8 hex digits, random, not part of the secret
    std::string sha256;  // of the secret, in hex
};
[[nodiscard]] NewToken make_token();
[[nodiscard]] std::string token_sha256(std::string_view secret);

// Returns `who` as one of the tenant, if one is named: forbidden if there is none of that name.
[[nodiscard]] Result<Principal> of_tenant(Principal who, std::optional<std::string> const& name,
                                          Tenants const& tenants);

// `tokens` are by the secret's SHA-256. The Authorization header decides if present, on any socket;
// otherwise the unix socket's peer or the client certificate does. Errors never contain the secret.
// A guest (vsock) has no principal, and neither has who is of a tenant that does not exist. A
// certificate of the fleet's CA is a replica's, or nobody's, whatever `rules` say of its names.
[[nodiscard]] Result<Principal> authenticate(http::Peer const& peer,
                                             std::map<std::string, std::string> const& headers,
                                             RoleRules const& rules,
                                             std::map<std::string, Token> const& tokens, Time now,
                                             Tenants const& tenants = {},
                                             OpenSessions const& sessions = {},
                                             FleetTrust const* fleet = nullptr);

// Whether the peer would be the same principal now, with as high a role, by what it showed then, of
// a tenant that may do what it could then.
[[nodiscard]] bool still_holds(Principal const& who, http::Peer const& peer, RoleRules const& rules,
                               std::map<std::string, Token> const& tokens, Time now,
                               Tenants const& tenants = {}, OpenSessions const& sessions = {},
                               FleetTrust const* fleet = nullptr);

}  // namespace vfmgr
