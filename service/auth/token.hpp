// SPDX-License-Identifier: Apache-2.0
// Bearer tokens: 256 random bits after "vfm_". The secret is shown once, to its creator; only its
// SHA-256 is kept. Pure except for the random numbers; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

struct NewToken {
    std::string secret;  // "vfm_" and 64 hex digits
    std::string id;      // 8 hex digits, random, not part of the secret
    std::string sha256;  // of the secret, in hex
};

[[nodiscard]] Result<NewToken> make_token();

// Returns hex; the store's lookup key for a token.
[[nodiscard]] std::string token_sha256(std::string_view secret);

// Constant time for inputs of one length, wherever they differ.
[[nodiscard]] bool same_digest(std::string_view one, std::string_view other);

}  // namespace vfmgr
