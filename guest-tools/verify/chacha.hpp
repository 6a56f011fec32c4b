// SPDX-License-Identifier: Apache-2.0
// ChaCha as in RFC 8439, with 8 rounds in place of 20, so that a GPU checks a payload as fast as it
// reads its memory. No attack is known that tells the stream from chance at 8 rounds, or foretells
// it. Not for encryption. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vfmgr::verify {

inline constexpr std::size_t chacha_block_bytes = 64;

struct ChaCha {
    std::array<std::byte, 32> key{};
    std::uint64_t nonce = 0;  // its first 8 bytes; 4 of zeros follow
};

// Whole blocks of the stream, from block `first` on; after block 2^32 - 1 comes block 0 again.
void chacha_blocks(ChaCha const& of, std::uint32_t first, std::span<std::byte> out);

}  // namespace vfmgr::verify
