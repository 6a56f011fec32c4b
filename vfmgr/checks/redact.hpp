// SPDX-License-Identifier: Apache-2.0
// Removes secrets from text of any format: values after a secret's name (secret_names.hpp), keys
// between "-----BEGIN" and "-----END", credentials in URLs, and secrets with a known form. If a
// format leaves the end of a secret open, it removes more rather than less. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vfmgr::checks {

// Idempotent.
[[nodiscard]] std::string redact(std::string_view text);

}  // namespace vfmgr::checks
