// SPDX-License-Identifier: Apache-2.0
// Secrets out of text of any format: what a name of a secret (secret_names.hpp) says, keys between
// "-----BEGIN" and "-----END", credentials in URLs, and what is known by its form. Where a format
// leaves it open how far a secret goes, more is removed rather than less. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vfmgr::checks {

// Again on what it gave: the same.
[[nodiscard]] std::string redact(std::string_view text);

}  // namespace vfmgr::checks
