// SPDX-License-Identifier: Apache-2.0
// Facts as a document, to take away and to judge elsewhere: vfctl support-bundle, vf-guest report
// --bundle, and the tests' recorded hosts. Bytes that are not text are hexadecimal.
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "vfmgr/checks/facts.hpp"

namespace vfmgr::checks {

inline constexpr std::size_t bundle_bytes_max = 64 << 20;

// One JSON document, indented, ending with a newline. Facts that hold secrets go through
// without_secrets() first.
[[nodiscard]] std::string to_bundle(Facts const& facts);
// invalid_request names what is wrong, and where.
[[nodiscard]] Result<Facts> from_bundle(std::string_view document);

// Secrets are replaced in files and outputs (redact.hpp).
[[nodiscard]] Facts without_secrets(Facts facts);

}  // namespace vfmgr::checks
