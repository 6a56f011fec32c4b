// SPDX-License-Identifier: Apache-2.0
// What tokens may be given, when they end, and what follows from a new secret. Values and pure
// functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "service/auth/authenticate.hpp"

namespace vfmgr {

using Scopes = std::optional<std::vector<std::string>>;

// A token whose request says nothing of it ends after token_lifetime_default.
[[nodiscard]] Result<std::optional<Time>> expiry_of(TokenRequest const& request, Time now);

// Refuses a scope that is none of the API's nouns, nor external_holders_scope: a typo would deny
// what was meant.
[[nodiscard]] Result<void> check_scopes(Scopes const& scopes,
                                        std::vector<std::string> const& nouns);

// Refuses scopes beyond those of `who`: they would be no limit if a token with them could hand out
// one without.
[[nodiscard]] Result<void> may_hand_out(Principal const& who, Scopes const& scopes);

// The permission to attach VFs to external holders: no role below admin has it, and a token with
// scopes has it only if they name it.
inline constexpr auto external_holders_scope = "external-holders";
[[nodiscard]] Result<void> may_name_holders(Principal const& who);

// Refuses a token whose scopes name the VMs, by which it got here, but not the attachments.
[[nodiscard]] Result<void> may_adopt(Principal const& who);

// Gives the token another secret. It then lasts as long as it was to last from the secret before;
// that one is valid during `grace`, and the one before it no longer.
[[nodiscard]] Token rotated(Token token, std::string sha256, Time now, std::chrono::seconds grace);

// Whether a token that was used in the last 30 days ends within 7.
[[nodiscard]] bool ends_soon(Token const& token, Time now);

}  // namespace vfmgr
