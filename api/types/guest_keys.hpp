// SPDX-License-Identifier: Apache-2.0
// By what a guest that reaches the host by TCP shows that it is its attachment's. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// A secret, of which only the SHA-256 is kept, in hex.
struct GuestSecret {
    std::string sha256;
    Time until{};  // it is valid before
    bool operator==(GuestSecret const&) const = default;
};

// Those of one attachment; they end with it. The token of an enrolment is good once, for a key; a
// key also for the next one.
struct GuestKeys {
    std::string attachment;
    std::optional<GuestSecret> token{};
    std::vector<GuestSecret> keys{};  // the newest last; the one before stays until its own end
    bool operator==(GuestKeys const&) const = default;
};

// Returns what the keys are once `made` was given for the secret with this SHA-256. A token's key
// replaces all others. Fails with unauthorized. Pure.
[[nodiscard]] Result<GuestKeys> enrolled(GuestKeys keys, std::string const& shown_sha256,
                                         GuestSecret made, Time now);
// Whether one of the keys has this SHA-256.
[[nodiscard]] bool opens(std::vector<GuestSecret> const& keys, std::string const& shown_sha256,
                         Time now);

extern template struct Json<GuestSecret>;
extern template struct Json<GuestKeys>;

}  // namespace vfmgr
