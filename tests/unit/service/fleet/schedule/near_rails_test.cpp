// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/schedule/near_rails.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/unit/service/fleet/schedule/fleet_hosts.hpp"
#include "vfmgr/plan/placement.hpp"

namespace vfmgr::fleet {
namespace {

struct DrawnSlots {
    std::vector<PciPlace> gpus;
    std::vector<PciPlace> pfs;
    std::vector<std::uint16_t> free;

    [[nodiscard]] std::vector<PciPlace const*> gpu_places() const {
        std::vector<PciPlace const*> places;
        for (auto const& gpu : gpus) places.push_back(&gpu);
        return places;
    }
    [[nodiscard]] std::vector<Slot> slots() const {
        std::vector<Slot> slots;
        for (std::size_t i = 0; i < pfs.size(); ++i) slots.push_back({{&pfs[i]}, free[i]});
        return slots;
    }
};

PciPlace drawn_place(int bus) {
    return test::place_behind(static_cast<std::uint8_t>(bus), *rc::gen::inRange(0, 2),
                              static_cast<std::uint8_t>(*rc::gen::inRange(0, 3)));
}

DrawnSlots drawn_slots() {
    DrawnSlots drawn;
    auto const gpus = *rc::gen::inRange(1, 5);
    auto const pfs = *rc::gen::inRange(1, 4);
    for (int i = 0; i < gpus; ++i) drawn.gpus.push_back(drawn_place(0x10 + i));
    for (int i = 0; i < pfs; ++i) {
        drawn.pfs.push_back(drawn_place(0x40 + i));
        drawn.free.push_back(static_cast<std::uint16_t>(*rc::gen::inRange(0, 3)));
    }
    return drawn;
}

// The number of pairs first, negated; then the distances; then how much slots are shared.
struct Quality {
    int missing = 0;
    Distances distances{};
    std::size_t shared = 0;
    auto operator<=>(Quality const&) const = default;
};

Quality quality_of(DrawnSlots const& drawn, std::vector<NearPair> const& pairs) {
    Quality quality{-static_cast<int>(pairs.size()), {}, 0};
    std::vector<std::size_t> used(drawn.pfs.size());
    for (auto const& pair : pairs) {
        auto const apart = distance(drawn.gpus.at(pair.gpu), drawn.pfs.at(pair.slot));
        ++quality.distances.at(static_cast<std::size_t>(apart));
        quality.shared += used.at(pair.slot)++;
    }
    return quality;
}

// Tries everything.
void try_rest(DrawnSlots const& drawn, PciDistance within, std::size_t count,
              std::vector<NearPair>& pairs, std::size_t gpu, Quality& best) {
    best = std::min(best, quality_of(drawn, pairs));
    if (gpu == drawn.gpus.size() || pairs.size() == count) return;
    try_rest(drawn, within, count, pairs, gpu + 1, best);
    for (std::size_t s = 0; s < drawn.pfs.size(); ++s) {
        auto const used = std::ranges::count(pairs, s, &NearPair::slot);
        if (used >= drawn.free[s] || distance(drawn.gpus[gpu], drawn.pfs[s]) < within) continue;
        pairs.push_back({gpu, s, 0, PciDistance::unknown});
        try_rest(drawn, within, count, pairs, gpu + 1, best);
        pairs.pop_back();
    }
}

RC_GTEST_PROP(NearRails, AreTheBestOfAll, ()) {
    auto const drawn = drawn_slots();
    auto const within = *rc::gen::element(PciDistance::sys, PciDistance::pxb, PciDistance::pix);
    auto const count = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    auto const near = near_rails(drawn.gpu_places(), drawn.slots(), within, count);
    for (auto const& pair : near.pairs) RC_ASSERT(pair.distance >= within);
    Quality best;
    std::vector<NearPair> none;
    try_rest(drawn, within, count, none, 0, best);
    RC_ASSERT(quality_of(drawn, near.pairs) == best);
}

// On one host vfmgrd chooses by vfmgr/plan/placement.hpp: both must judge alike.
RC_GTEST_PROP(NearRails, AreAsGoodAsTheHostsOwnChoice, ()) {
    auto const drawn = drawn_slots();
    auto const near =
        near_rails(drawn.gpu_places(), drawn.slots(), PciDistance::unknown, drawn.gpus.size());
    std::vector<NearNic> nics;
    for (std::size_t i = 0; i < drawn.pfs.size(); ++i)
        nics.push_back({drawn.pfs[i], drawn.free[i]});
    auto const placement = place_gpus(drawn.gpus, nics);
    std::vector<NearPair> pairs;
    for (std::size_t g = 0; g < placement.size(); ++g)
        if (placement[g]) pairs.push_back({g, *placement[g], 0, PciDistance::unknown});
    RC_ASSERT(quality_of(drawn, near.pairs) == quality_of(drawn, pairs));
}

TEST(NearRails, TakeTheNearestPfOfARail) {
    auto const gpu = test::place_behind(0x10, 0, 1);
    auto const far = test::place_behind(0x40, 1, 2);
    auto const near = test::place_behind(0x41, 0, 1);
    auto const found = near_rails({&gpu}, {{{&far, &near}, 1}}, PciDistance::sys, 1);
    ASSERT_EQ(found.pairs.size(), 1U);
    EXPECT_EQ(found.pairs[0].pf, 1U);
    EXPECT_EQ(found.pairs[0].distance, PciDistance::pix);
}

TEST(NearRails, NameAGpuThatReachesNone) {
    auto const gpu = test::place_behind(0x10, 0, 1);
    auto const far = test::place_behind(0x40, 1, 2);
    auto const none = near_rails({&gpu}, {{{&far}, 1}}, PciDistance::pxb, 1);
    EXPECT_TRUE(none.pairs.empty());
    EXPECT_EQ(none.without, 0U);
}

}  // namespace
}  // namespace vfmgr::fleet
