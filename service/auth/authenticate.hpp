// SPDX-License-Identifier: Apache-2.0
// Maps a connection and its headers to a name and a role. Values and pure functions, except
// resolve_roles(); any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/time.hpp"
#include "service/auth/principal.hpp"

namespace vfmgr {

// Roles of the unix socket's users. A user with several roles has the highest; uid 0 is always an
// admin; a user with none may do nothing.
struct RoleRules {
    std::map<std::uint32_t, Role> uids;
    std::map<std::uint32_t, Role> gids;
};

struct ResolvedRoles {
    RoleRules rules;
    std::vector<std::string> unknown_groups;  // groups that this host lacks; they have no members
};
// Resolves the groups' ids on the host: at start and on reload, never for a request.
[[nodiscard]] ResolvedRoles resolve_roles(std::map<std::string, Role> const& groups,
                                          std::map<std::uint32_t, Role> const& uids);

// A token as stored.
struct KnownToken {
    std::string id;
    std::string sha256;  // hex
    Role role = Role::viewer;
    std::optional<Time> expires_at;
};
using TokenLookup = std::function<Result<std::optional<KnownToken>>(std::string const& sha256)>;

// The Authorization header decides if present, on any socket; otherwise the unix socket's peer
// does. Errors never contain the secret. A guest (vsock) has no principal.
[[nodiscard]] Result<Principal> authenticate(http::Peer const& peer,
                                             std::map<std::string, std::string> const& headers,
                                             RoleRules const& rules, TokenLookup const& find_token,
                                             Time now);

}  // namespace vfmgr
