// SPDX-License-Identifier: Apache-2.0
// From a connection and its headers to a name and a role. Values and pure functions, but for
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

// Who on the unix socket has which role. Somebody with several has the highest; uid 0 is always an
// admin; somebody with none may do nothing.
struct RoleRules {
    std::map<std::uint32_t, Role> uids;
    std::map<std::uint32_t, Role> gids;
};

struct ResolvedRoles {
    RoleRules rules;
    std::vector<std::string> unknown_groups;  // this host has no such group: nobody is in it
};
// Asks the host for the groups' numbers: at start and on reload, never for a request.
[[nodiscard]] ResolvedRoles resolve_roles(std::map<std::string, Role> const& groups,
                                          std::map<std::uint32_t, Role> const& uids);

// A token as the store has it.
struct KnownToken {
    std::string id;
    std::string sha256;  // hex
    Role role = Role::viewer;
    std::optional<Time> expires_at;
};
using TokenLookup = std::function<Result<std::optional<KnownToken>>(std::string const& sha256)>;

// An Authorization header decides when there is one, on any socket; otherwise the unix socket's
// peer does. Never names the secret. A guest (vsock) is nobody here.
[[nodiscard]] Result<Principal> authenticate(http::Peer const& peer,
                                             std::map<std::string, std::string> const& headers,
                                             RoleRules const& rules, TokenLookup const& find_token,
                                             Time now);

}  // namespace vfmgr
