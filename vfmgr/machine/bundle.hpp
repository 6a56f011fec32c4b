// SPDX-License-Identifier: Apache-2.0
// Facts as one document that can be taken away and judged elsewhere: vfctl support-bundle, vf-guest
// report --bundle, and the tests' recorded hosts. Bytes that are not text are hexadecimal.
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks {

inline constexpr std::size_t bundle_bytes_max = 64 << 20;

// Returns one indented JSON document that ends with a newline. Facts that hold secrets must go
// through without_secrets() first.
[[nodiscard]] std::string to_bundle(Facts const& facts);
// An invalid_request error names what is wrong, and where.
[[nodiscard]] Result<Facts> from_bundle(std::string_view document);

// Replaces secrets in files and outputs (redact.hpp).
[[nodiscard]] Facts without_secrets(Facts facts);

}  // namespace vfmgr::checks
