// SPDX-License-Identifier: Apache-2.0
// A token as the daemons keep it: what its secret may do, and until when. Clients get the
// TokenView of daemon.hpp. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/time.hpp"

namespace vfmgr {

struct TokenUse {
    Time at{};
    std::string from;  // address:10.0.0.9, uid:1000
    bool operator==(TokenUse const&) const = default;
};

struct Token {
    std::string id;
    std::string sha256;  // hex, of the secret; the secret itself is never stored
    std::string role;    // viewer, operator, admin
    std::string description;
    Time created_at{};
    std::optional<Time> expires_at;
    std::optional<std::vector<std::string>> scopes{};  // nouns; absent: all that the role may
    std::optional<Time> rotated_at{};                  // when its secret was replaced last
    struct Former {
        std::string sha256;
        Time until{};  // it is valid before
        bool operator==(Former const&) const = default;
    };
    std::optional<Former> former{};      // the secret before
    std::optional<TokenUse> last_use{};  // at times older than the last one
    std::optional<std::string> tenant{};
    bool operator==(Token const&) const = default;
};
using Tokens = std::map<std::string, Token>;  // by the secrets' SHA-256

}  // namespace vfmgr
