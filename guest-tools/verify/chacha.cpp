// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/chacha.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

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

}  // namespace vfmgr::verify
