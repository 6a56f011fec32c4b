// SPDX-License-Identifier: Apache-2.0
// ChaCha as in RFC 8439, but with 8 rounds instead of 20, which lets a GPU check a payload as fast
// as it reads its memory. No known attack distinguishes the stream of 8 rounds from random bytes,
// or predicts it. Not for encryption. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vfmgr::verify {

inline constexpr std::size_t chacha_block_bytes = 64;

struct ChaCha {
    std::array<std::byte, 32> key{};
    std::uint64_t nonce = 0;  // the nonce's first 8 bytes; the last 4 are zero
};

// Writes whole blocks of the stream, starting at block `first`. Block 0 follows block 2^32 - 1.
void chacha_blocks(ChaCha const& of, std::uint32_t first, std::span<std::byte> out);

}  // namespace vfmgr::verify
