// SPDX-License-Identifier: Apache-2.0
// What travels in the tests: bytes from a key, in chunks of 64 that carry their own offset and an
// epoch, so that a misplaced chunk is named ("chunk 17 landed at chunk 18"), not only counted.
// The stream is ChaCha's, of 8 rounds: who has read part of it can't compute the rest. Pure; any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vfmgr::verify {

inline constexpr std::size_t payload_chunk_bytes = 64;
inline constexpr std::byte poison_byte{0xa5};  // of all poisoned memory

struct Payload {
    std::array<std::byte, 32> key{};
    std::uint64_t epoch = 0;

    // From a seed that both ends know (SessionOffer.write_seed, ping_seed).
    [[nodiscard]] static Payload from_seed(std::uint64_t seed, std::uint64_t epoch);
    // From a key that never leaves this process.
    [[nodiscard]] static Payload secret(std::uint64_t epoch);
};

// `memory` becomes the payload's bytes from `offset` on. Both are multiples of a chunk.
void fill(Payload const& payload, std::uint64_t offset, std::span<std::byte> memory);
// Bytes that no payload has: what was not written is recognised.
void poison(std::span<std::byte> memory);

struct PayloadCheck {
    std::uint64_t bytes_checked = 0;
    std::uint64_t mismatches = 0;  // bytes
    std::string detail;            // of the first bad chunk; empty when there is none
    bool untouched = false;        // every byte is still poison

    // Sums, but for `untouched`; the first detail stays.
    void add(PayloadCheck const& other);
};
[[nodiscard]] PayloadCheck check(Payload const& payload, std::uint64_t offset,
                                 std::span<std::byte const> memory);

}  // namespace vfmgr::verify
