// SPDX-License-Identifier: Apache-2.0
// Data that only its maker can predict. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vfmgr::verify {

// ChaCha as in RFC 8439, but with 8 rounds instead of 20, which lets a GPU check a payload as fast
// as it reads its memory. No known attack distinguishes the stream of 8 rounds from random bytes,
// or predicts it. Not for encryption. Pure; any thread.

inline constexpr std::size_t chacha_block_bytes = 64;

struct ChaCha {
    std::array<std::byte, 32> key{};
    std::uint64_t nonce = 0;  // the nonce's first 8 bytes; the last 4 are zero
};

// Writes whole blocks of the stream, starting at block `first`. Block 0 follows block 2^32 - 1.
void chacha_blocks(ChaCha const& of, std::uint32_t first, std::span<std::byte> out);

// The data of the tests: bytes from a key, in chunks of 64 that carry their own offset and an
// epoch, which names a misplaced chunk ("chunk 17 landed at chunk 18") instead of only counting it.
// The stream is ChaCha with 8 rounds: a reader of one part can't compute the rest. Pure; any
// thread.

inline constexpr std::size_t payload_chunk_bytes = 64;
inline constexpr std::byte poison_byte{0xa5};  // fills all poisoned memory

struct Payload {
    std::array<std::byte, 32> key{};
    std::uint64_t epoch = 0;

    // From a seed that both ends know (SessionOffer.write_seed, ping_seed).
    [[nodiscard]] static Payload from_seed(std::uint64_t seed, std::uint64_t epoch);
    // From a key that never leaves this process.
    [[nodiscard]] static Payload secret(std::uint64_t epoch);
};

// Fills `memory` with the payload's bytes from `offset` on. Both are multiples of a chunk.
void fill(Payload const& payload, std::uint64_t offset, std::span<std::byte> memory);
// Writes bytes that no payload has, which reveals memory that was not written.
void poison(std::span<std::byte> memory);

struct PayloadCheck {
    std::uint64_t bytes_checked = 0;
    std::uint64_t mismatches = 0;  // bytes
    std::string detail;            // of the first bad chunk; empty if there is none
    bool untouched = false;        // every byte is still poison

    // Adds the counts, but not `untouched`; keeps the first detail.
    void add(PayloadCheck const& other);
};
[[nodiscard]] PayloadCheck check(Payload const& payload, std::uint64_t offset,
                                 std::span<std::byte const> memory);

}  // namespace vfmgr::verify
