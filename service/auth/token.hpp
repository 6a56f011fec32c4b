// SPDX-License-Identifier: Apache-2.0
// Bearer tokens: 256 random bits behind "vfm_". The secret is shown once, to whoever made it; what
// is kept is its SHA-256. Pure but for the random numbers; any thread.
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

// In hex; what the store looks a token up by.
[[nodiscard]] std::string token_sha256(std::string_view secret);

// Takes as long for every pair of the same length, wherever they differ.
[[nodiscard]] bool same_digest(std::string_view one, std::string_view other);

}  // namespace vfmgr
