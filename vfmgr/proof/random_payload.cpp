// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/random_payload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/os/random.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::verify {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int double_rounds = 4;
constexpr std::size_t words = 16;

// Holds the same word of several blocks, one block in each lane.
using Four = std::uint32_t __attribute__((vector_size(16)));
using Eight = std::uint32_t __attribute__((vector_size(32)));
template <class Lanes>
struct State {
    Lanes word[words];
};

template <int by, class Lanes>
[[gnu::always_inline]] inline void turn(Lanes& word) {
    word = (word << by) | (word >> (32 - by));
}

template <class S>
[[gnu::always_inline]] inline void quarter_round(S& x, int a, int b, int c, int d) {
    x.word[a] += x.word[b];
    x.word[d] ^= x.word[a];
    turn<16>(x.word[d]);
    x.word[c] += x.word[d];
    x.word[b] ^= x.word[c];
    turn<12>(x.word[b]);
    x.word[a] += x.word[b];
    x.word[d] ^= x.word[a];
    turn<8>(x.word[d]);
    x.word[c] += x.word[d];
    x.word[b] ^= x.word[c];
    turn<7>(x.word[b]);
}

template <class S>
[[gnu::always_inline]] inline void begin_at(S& x, ChaCha const& of, std::uint32_t first) {
    // The caller leaves x zero, so adding sets it.
    std::array<std::uint32_t, words> one{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    std::memcpy(&one[4], of.key.data(), of.key.size());
    std::memcpy(&one[13], &of.nonce, sizeof of.nonce);
    for (std::size_t n = 0; n < words; ++n) x.word[n] += one[n];
    for (std::size_t lane = 0; lane < sizeof x.word[12] / sizeof one[12]; ++lane)
        x.word[12][lane] = first + static_cast<std::uint32_t>(lane);
}

template <class Lanes>
[[gnu::always_inline]] inline void make_blocks(ChaCha const& of, std::uint32_t first,
                                               std::span<std::byte> out) {
    constexpr std::size_t lanes = sizeof(Lanes) / sizeof(std::uint32_t);
    State<Lanes> begin{};
    begin_at(begin, of, first);
    std::uint32_t wide[words][lanes];
    std::uint32_t made[lanes][words];
    while (!out.empty()) {
        auto x = begin;
        for (int round = 0; round < double_rounds; ++round) {
            for (int n = 0; n < 4; ++n) quarter_round(x, n, n + 4, n + 8, n + 12);
            for (int n = 0; n < 4; ++n)
                quarter_round(x, n, (n + 1) % 4 + 4, (n + 2) % 4 + 8, (n + 3) % 4 + 12);
        }
        for (std::size_t n = 0; n < words; ++n) x.word[n] += begin.word[n];
        std::memcpy(wide, x.word, sizeof wide);
        for (std::size_t lane = 0; lane < lanes; ++lane)
            for (std::size_t n = 0; n < words; ++n) made[lane][n] = wide[n][lane];
        auto const taken = std::min(out.size(), sizeof made);
        std::memcpy(out.data(), made, taken);
        out = out.subspan(taken);
        begin.word[12] += static_cast<std::uint32_t>(lanes);
    }
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void make_with_avx2(ChaCha const& of, std::uint32_t first,
                                            std::span<std::byte> out) {
    make_blocks<Eight>(of, first, out);
}
#endif

}  // namespace

void chacha_blocks(ChaCha const& of, std::uint32_t first, std::span<std::byte> out) {
    assert(out.size() % chacha_block_bytes == 0);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) return make_with_avx2(of, first, out);
#endif
    make_blocks<Four>(of, first, out);  // as many blocks as an SSE2 or NEON register has lanes
}

namespace {

constexpr std::size_t block_bytes = 256 * payload_chunk_bytes;
constexpr std::uint64_t counter_max = 0xffffffff;

// The first bytes of a chunk; little-endian, like this machine.
struct Stamp {
    std::uint64_t offset = 0;
    std::uint64_t epoch = 0;
};

Stamp read_stamp(std::span<std::byte const> chunk) {
    Stamp stamp;
    std::memcpy(&stamp, chunk.data(), sizeof stamp);
    return stamp;
}

// A block is 64 bytes, so chunk n is block n of the stream.
void keystream(Payload const& payload, std::uint64_t offset, std::span<std::byte> out) {
    static_assert(chacha_block_bytes == payload_chunk_bytes);
    chacha_blocks({payload.key, payload.epoch},
                  static_cast<std::uint32_t>(offset / payload_chunk_bytes), out);
}

std::string first_byte_that_differs(std::size_t place, std::span<std::byte const> found,
                                    std::span<std::byte const> expected) {
    auto const at = std::ranges::mismatch(found, expected);
    auto const index = static_cast<std::size_t>(at.in1 - found.begin());
    return fmt::format("chunk {} differs from byte {} on: 0x{:02x}, expected 0x{:02x}", place,
                       place * payload_chunk_bytes + index, std::to_integer<unsigned>(*at.in1),
                       std::to_integer<unsigned>(*at.in2));
}

// Explains in one sentence why the chunk at `offset` is wrong.
std::string explain(Payload const& payload, std::uint64_t offset, std::span<std::byte const> found,
                    std::span<std::byte const> expected) {
    auto const place = offset / payload_chunk_bytes;
    if (std::ranges::all_of(found, [](std::byte b) { return b == poison_byte; }))
        return fmt::format("chunk {} was never written", place);
    auto const stamp = read_stamp(found);
    std::array<std::byte, payload_chunk_bytes> other{};
    // Beyond the stream's counter, chunks repeat: such an offset belongs to no chunk.
    bool const possible = stamp.offset % payload_chunk_bytes == 0 &&
                          stamp.offset / payload_chunk_bytes <= counter_max;
    if (possible && stamp.offset != offset) {
        fill(payload, stamp.offset, other);
        if (std::ranges::equal(found, other))
            return fmt::format("chunk {} landed at chunk {}", stamp.offset / payload_chunk_bytes,
                               place);
    }
    if (stamp.offset == offset && stamp.epoch != payload.epoch) {
        fill(Payload{payload.key, stamp.epoch}, offset, other);
        if (std::ranges::equal(found, other))
            return fmt::format("chunk {} is stale: of epoch {}, expected {}", place, stamp.epoch,
                               payload.epoch);
    }
    return first_byte_that_differs(place, found, expected);
}

}  // namespace

Payload Payload::from_seed(std::uint64_t seed, std::uint64_t epoch) {
    Payload payload{{}, epoch};
    std::memcpy(payload.key.data(), &seed, sizeof seed);
    return payload;
}

Payload Payload::secret(std::uint64_t epoch) {
    Payload payload{{}, epoch};
    random_bytes(payload.key);
    return payload;
}

void fill(Payload const& payload, std::uint64_t offset, std::span<std::byte> memory) {
    assert(offset % payload_chunk_bytes == 0 && memory.size() % payload_chunk_bytes == 0);
    keystream(payload, offset, memory);
    for (std::size_t at = 0; at < memory.size(); at += payload_chunk_bytes) {
        Stamp const stamp{offset + at, payload.epoch};
        std::memcpy(&memory[at], &stamp, sizeof stamp);
    }
}

void poison(std::span<std::byte> memory) {
    std::ranges::fill(memory, poison_byte);
}

void PayloadCheck::add(PayloadCheck const& other) {
    bytes_checked += other.bytes_checked;
    mismatches += other.mismatches;
    if (detail.empty()) detail = other.detail;
}

PayloadCheck check(Payload const& payload, std::uint64_t offset,
                   std::span<std::byte const> memory) {
    assert(offset % payload_chunk_bytes == 0 && memory.size() % payload_chunk_bytes == 0);
    PayloadCheck result;
    result.bytes_checked = memory.size();
    result.untouched = std::ranges::all_of(memory, [](std::byte b) { return b == poison_byte; });
    std::vector<std::byte> expected(std::min(block_bytes, memory.size()));
    for (std::size_t block = 0; block < memory.size(); block += block_bytes) {
        auto const found = memory.subspan(block, std::min(block_bytes, memory.size() - block));
        auto const block_expected = std::span(expected).first(found.size());
        fill(payload, offset + block, block_expected);
        if (std::memcmp(found.data(), block_expected.data(), found.size()) == 0) continue;
        for (std::size_t at = 0; at < found.size(); ++at)
            if (found[at] != block_expected[at]) ++result.mismatches;
        if (!result.detail.empty()) continue;
        for (std::size_t at = 0; at < found.size(); at += payload_chunk_bytes) {
            auto const a = found.subspan(at, payload_chunk_bytes);
            auto const b = block_expected.subspan(at, payload_chunk_bytes);
            if (std::ranges::equal(a, b)) continue;
            result.detail = explain(payload, offset + block + at, a, b);
            break;
        }
    }
    return result;
}

}  // namespace vfmgr::verify
