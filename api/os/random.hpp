// SPDX-License-Identifier: Apache-2.0
// Randomness from the kernel, for keys, ids and sequence numbers. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vfmgr {

void random_bytes(std::span<std::byte> out);
[[nodiscard]] std::uint64_t random_number();
// `bytes` random bytes as lower-case hex: ids of sessions and runs, nonces.
[[nodiscard]] std::string random_hex(std::size_t bytes);
// In lower case. Every request has an id and a token's digest, so this is fast.
[[nodiscard]] std::string hex(std::span<std::byte const> bytes);

}  // namespace vfmgr
