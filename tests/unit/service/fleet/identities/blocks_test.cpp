// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/blocks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/unit/service/fleet/identities/fleet_snapshot.hpp"

namespace vfmgr::fleet {
namespace {

using test::address;
using test::mac;

Identities fleet_of(std::vector<char const*> const& macs,
                    std::vector<char const*> const& addresses) {
    Identities fleet;
    for (auto const* const text : macs)
        fleet.macs.push_back(Range<MacAddress>::parse(text).value());
    fleet.addresses.push_back({"train", {}});
    for (auto const* const text : addresses)
        fleet.addresses[0].ranges.push_back(Range<IpAddress>::parse(text).value());
    return fleet;
}

std::vector<FreeBlock> all_blocks(IdentityRanges const& ranges, std::size_t limit) {
    std::vector<FreeBlock> all;
    std::vector<Block> taken;
    while (all.size() < limit) {
        auto const block = next_block(ranges, taken, "node1");
        if (!block) break;
        taken.push_back({block->first, block->last, "node1", "", {}});
        all.push_back(*block);
    }
    return all;
}

TEST(Blocks, OfMacsAre64AndAligned) {
    auto const ranges = mac_ranges(fleet_of({"52:54:00:00:00:10-52:54:00:00:01:3f"}, {}));
    EXPECT_EQ(block_size(ranges), 64U);
    std::set<std::string> found;
    for (auto const& [first, last] : all_blocks(ranges, 99))
        found.insert(to_string(first) + "-" + to_string(last));
    EXPECT_EQ(found,
              (std::set<std::string>{
                  "52:54:00:00:00:40-52:54:00:00:00:7f", "52:54:00:00:00:80-52:54:00:00:00:bf",
                  "52:54:00:00:00:c0-52:54:00:00:00:ff", "52:54:00:00:01:00-52:54:00:00:01:3f"}));
}

TEST(Blocks, OfAddressesFitTheirPrefix) {
    auto const size = [](char const* range) {
        return block_size(address_ranges(fleet_of({}, {range}), "train"));
    };
    EXPECT_EQ(size("10.0.0.0-10.0.255.255"), 16U);
    EXPECT_EQ(size("10.0.0.0-10.0.0.255"), 16U);
    EXPECT_EQ(size("10.1.0.10-10.1.0.99"), 4U);
    EXPECT_EQ(size("10.0.0.1-10.0.0.6"), 1U);
    EXPECT_EQ(size("fd00::-fd00::ffff:ffff"), 16U);
    EXPECT_EQ(size("fd00::-fdff::"), 16U) << "the first 2^64 are enough";
    EXPECT_EQ(all_blocks(address_ranges(fleet_of({}, {"10.0.0.1-10.0.0.6"}), "train"), 99).size(),
              6U);
    EXPECT_TRUE(address_ranges(fleet_of({}, {}), "other").empty());
    EXPECT_EQ(next_block({}, {}, "node1"), std::nullopt);
}

TEST(Blocks, ReachTheEndOfTheirKind) {
    Identities fleet;
    fleet.guids.push_back({Guid{1}, Guid{UINT64_MAX}});
    auto const block = next_block(guid_ranges(fleet), {}, "node1");
    ASSERT_TRUE(block);
    EXPECT_EQ(low_bits(block->last) - low_bits(block->first), 63U);
    fleet.guids[0].first = Guid{UINT64_MAX - 63};
    auto const last = next_block(guid_ranges(fleet), {}, "node1");
    ASSERT_TRUE(last);
    EXPECT_EQ(low_bits(last->last), UINT64_MAX);
}

TEST(Blocks, BeginElsewhereForEachHost) {
    auto const ranges = mac_ranges(fleet_of({"52:54:00:00:00:00-52:54:00:ff:ff:ff"}, {}));
    std::set<std::string> firsts;
    for (int i = 0; i < 100; ++i)
        firsts.insert(to_string(next_block(ranges, {}, "node" + std::to_string(i))->first));
    EXPECT_GT(firsts.size(), 95U);
    EXPECT_EQ(next_block(ranges, {}, "node1"), next_block(ranges, {}, "node1"));
}

// Ranges that changed gave blocks of other sizes. They are in the way as well.
RC_GTEST_PROP(Blocks, NeverOverlap, ()) {
    std::vector<Block> taken;
    auto const length = *rc::gen::inRange(1, 200);
    for (int i = 0; i < 40; ++i) {
        auto range = Range<IpAddress>::parse("10.0.0.0-10.0.0.255").value();
        if (*rc::gen::inRange(0, 2) == 0) range.last.octets[3] = static_cast<std::uint8_t>(length);
        Identities fleet;
        fleet.addresses.push_back({"train", {range}});
        auto const ranges = address_ranges(fleet, "train");
        auto const block =
            next_block(ranges, taken, "node" + std::to_string(*rc::gen::inRange(0, 9)));
        if (!block) continue;
        for (auto const& other : taken)
            RC_ASSERT((low_bits(block->last) < low_bits(other.first) ||
                       low_bits(other.last) < low_bits(block->first)));
        RC_ASSERT(range.contains(std::get<IpAddress>(block->first.value)));
        RC_ASSERT(range.contains(std::get<IpAddress>(block->last.value)));
        taken.push_back({block->first, block->last, "", "", {}});
    }
}

TEST(Blocks, AreOneForEachFreeVfAndSomeMore) {
    EXPECT_EQ(blocks_missing({.vfs = 0, .attached = 0, .in_blocks = 0, .used = 0}, 64), 1U);
    EXPECT_EQ(blocks_missing({.vfs = 48, .attached = 0, .in_blocks = 0, .used = 0}, 64), 1U);
    EXPECT_EQ(blocks_missing({.vfs = 49, .attached = 0, .in_blocks = 0, .used = 0}, 64), 2U);
    EXPECT_EQ(blocks_missing({.vfs = 48, .attached = 40, .in_blocks = 64, .used = 40}, 64), 0U);
    EXPECT_EQ(blocks_missing({.vfs = 64, .attached = 20, .in_blocks = 64, .used = 20}, 64), 1U);
    EXPECT_EQ(blocks_missing({.vfs = 64, .attached = 20, .in_blocks = 64, .used = 4}, 64), 0U)
        << "the others' are claims";
    EXPECT_EQ(blocks_missing({.vfs = 8, .attached = 9, .in_blocks = 1, .used = 2}, 1), 1U);
}

TEST(Identity, HasItsKeysAndWords) {
    EXPECT_EQ(block_key(mac("52:54:00:00:01:00")), "blocks/mac/52:54:00:00:01:00");
    EXPECT_EQ(claim_key(test::guid("02:00:00:00:00:00:00:01")),
              "claims/guid/02:00:00:00:00:00:00:01");
    EXPECT_EQ(claim_key(address("10.0.0.7")), "claims/address/train/10.0.0.7");
    EXPECT_EQ(described(address("10.0.0.7")), "address 10.0.0.7 of network train");
    EXPECT_EQ(described(mac("52:54:00:00:01:00")), "MAC 52:54:00:00:01:00");
    EXPECT_EQ(low_bits(mac("52:54:00:00:01:00")), 0x525400000100U);
    EXPECT_EQ(with_low_bits(address("fd00::1"), 0x1ff), address("fd00::1ff"));
    EXPECT_EQ(with_low_bits(address("10.0.0.1"), 0x0a000102), address("10.0.1.2"));
    EXPECT_FALSE(comparable(address("fd00::1"), address("fd00:0:0:1::1")));
    EXPECT_FALSE(comparable(address("10.0.0.1"), address("fd00::1")));
    EXPECT_FALSE(comparable(mac("52:54:00:00:01:00"), address("10.0.0.1")));
}

}  // namespace
}  // namespace vfmgr::fleet
