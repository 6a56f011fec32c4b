// SPDX-License-Identifier: Apache-2.0
// What each rank adds in the test's all-reduce: whole numbers whose sum a float holds exactly,
// whatever the order of addition. They differ by run, rank and place, so a sum that is stale,
// misplaced or lacks a rank never equals the expected one. Pure.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace vfmgr::guest::gpu {

struct AllReduceValues {
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;

    [[nodiscard]] std::uint32_t of(std::uint32_t rank, std::size_t element) const {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
        constexpr int exact_bits = 24;                     // of a float
        auto mixed = (seed + (std::uint64_t{rank} << 40U) + element) * odd;
        mixed = (mixed ^ mixed >> 32U) * odd;
        auto const bits = exact_bits - std::bit_width(ranks);
        return static_cast<std::uint32_t>(mixed >> (64 - bits));
    }
    [[nodiscard]] std::uint32_t sum(std::size_t element) const {
        std::uint32_t sum = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) sum += of(rank, element);
        return sum;
    }
};

}  // namespace vfmgr::guest::gpu
