// SPDX-License-Identifier: Apache-2.0
// SHA-256 digests, in hex, over a run's nonce and the bytes that were transferred. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace vfmgr::verify {

[[nodiscard]] std::string to_hex(std::span<std::byte const> bytes);
// Lower-case hex of SHA-256(nonce || bytes): an earlier run's digest is useless in this one.
[[nodiscard]] std::string digest_hex(std::string_view nonce, std::span<std::byte const> bytes);

}  // namespace vfmgr::verify
