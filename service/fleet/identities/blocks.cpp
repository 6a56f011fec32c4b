// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/blocks.hpp"

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::uint64_t size_of_macs = 64;
constexpr std::uint64_t size_of_addresses = 16;
constexpr std::uint64_t blocks_at_least = 16;  // of a network's ranges
constexpr std::uint64_t spare_part = 4;        // of a block

template <class T>
IdentityRanges ranges_of(std::vector<Range<T>> const& ranges, std::string_view network) {
    IdentityRanges all;
    for (auto const& [first, last] : ranges) {
        IdentityRange range{{std::string(network), first}, {std::string(network), last}};
        // More than 2^64 addresses: these are enough.
        if (!comparable(range.first, range.last))
            range.last = with_low_bits(range.first, UINT64_MAX);
        all.push_back(std::move(range));
    }
    std::ranges::sort(all, {}, &IdentityRange::first);
    return all;
}

// The aligned blocks in a range, as numbers of blocks from zero on.
struct Aligned {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

Aligned aligned_in(IdentityRange const& range, std::uint64_t size) {
    auto const low = low_bits(range.first);
    auto const high = low_bits(range.last);
    auto const first = low / size + (low % size == 0 ? 0 : 1);
    auto const end = high / size + (high % size == size - 1 ? 1 : 0);
    return {first, end > first ? end - first : 0};
}

std::uint64_t blocks_in(IdentityRanges const& ranges, std::uint64_t size) {
    std::uint64_t count = 0;
    for (auto const& range : ranges) count += aligned_in(range, size).count;
    return count;
}

FreeBlock block_at(IdentityRanges const& ranges, std::uint64_t size, std::uint64_t number) {
    for (auto const& range : ranges) {
        auto const aligned = aligned_in(range, size);
        if (number >= aligned.count) {
            number -= aligned.count;
            continue;
        }
        auto const low = (aligned.first + number) * size;
        return {with_low_bits(range.first, low), with_low_bits(range.first, low + (size - 1))};
    }
    return {};
}

// Sorted, without overlaps.
bool overlaps(std::vector<Block> const& sorted, FreeBlock const& block) {
    auto const after = std::ranges::upper_bound(sorted, block.last, {}, &Block::first);
    if (after == sorted.begin()) return false;
    auto const& before = *std::prev(after);
    return comparable(before.first, block.first) && before.last.value >= block.first.value;
}

}  // namespace

IdentityRanges mac_ranges(Identities const& fleet) {
    return ranges_of(fleet.macs, "");
}
IdentityRanges guid_ranges(Identities const& fleet) {
    return ranges_of(fleet.guids, "");
}
IdentityRanges address_ranges(Identities const& fleet, std::string_view network) {
    auto const found = std::ranges::find(fleet.addresses, network, &NetworkRanges::network);
    return found == fleet.addresses.end() ? IdentityRanges{} : ranges_of(found->ranges, network);
}

std::uint64_t block_size(IdentityRanges const& ranges) {
    if (ranges.empty() || kind_of(ranges.front().first) != IdentityKind::address)
        return size_of_macs;
    auto size = size_of_addresses;
    while (size > 1 && blocks_in(ranges, size) < blocks_at_least) size /= 2;
    return size;
}

std::optional<FreeBlock> next_block(IdentityRanges const& ranges, std::vector<Block> const& taken,
                                    std::string_view host) {
    auto const size = block_size(ranges);
    auto const count = blocks_in(ranges, size);
    auto sorted = taken;
    std::ranges::sort(sorted, {}, &Block::first);
    // Ends soon: each failure is a block in the way, or a part of one from when sizes were others.
    auto const start = count == 0 ? 0 : stable_hash(host) % count;
    for (std::uint64_t tried = 0; tried < count; ++tried) {
        auto const block = block_at(ranges, size, (start + tried) % count);
        if (!overlaps(sorted, block)) return block;
    }
    return std::nullopt;
}

std::uint64_t blocks_missing(IdentityUse const& use, std::uint64_t block_size) {
    auto const wants_one = use.vfs - std::min(use.vfs, use.attached);
    auto const target = wants_one + (block_size + spare_part - 1) / spare_part;
    auto const free = use.in_blocks - std::min(use.in_blocks, use.used);
    return free >= target ? 0 : (target - free + block_size - 1) / block_size;
}

}  // namespace vfmgr::fleet
