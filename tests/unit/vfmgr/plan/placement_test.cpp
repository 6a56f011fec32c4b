// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/vfmgr/plan/best_placement.hpp"

namespace vfmgr {
namespace {

using test::badness;
using test::best_of_all;
using test::best_of_each_set;
using testing::ElementsAre;
using testing::IsEmpty;

// A function behind switches of a host bridge: on bus `root` of NUMA node `node`, below the ports
// 1, 2, …, of which those of one switch have one number.
PciPlace function_at(std::uint8_t number, std::uint8_t root, std::optional<int> node,
                     std::vector<std::uint8_t> const& ports) {
    PciPlace place{PciAddress{0, number, 0, 0}, {}, node, {}, {}};
    place.above.push_back({PciAddress{0, root, 1, 0}});
    for (auto const port : ports) place.above.push_back({PciAddress{0, port, 0, 0}});
    return place;
}

PciPlace on_node(std::uint8_t number, int node) {
    return function_at(number, static_cast<std::uint8_t>(0x10 * (node + 1)), node, {number});
}

TEST(Placement, IsOfNothingWithoutGpusOrNics) {
    EXPECT_THAT(place_gpus({}, {{on_node(1, 0), 4}}), IsEmpty());
    EXPECT_THAT(place_gpus({on_node(1, 0)}, {}), ElementsAre(std::nullopt));
    EXPECT_THAT(place_gpus({on_node(1, 0)}, {{on_node(2, 0), 0}}), ElementsAre(std::nullopt));
}

TEST(Placement, IsNotGreedy) {
    // The first GPU is as near to both NICs as the second is to one of them.
    auto const gpu_of_both = function_at(1, 0x10, 0, {0x20});
    auto const far_gpu = function_at(2, 0x10, 0, {0x20});
    NearNic const near{function_at(3, 0x10, 0, {0x20}), 1};
    NearNic const far{on_node(4, 1), 1};
    auto const placed = place_gpus({gpu_of_both, far_gpu, on_node(5, 1)}, {near, far});
    EXPECT_EQ(placed.at(2), 1U) << "the GPU of the other node has its node's NIC";
    EXPECT_NE(placed.at(0).has_value(), placed.at(1).has_value());
}

TEST(Placement, SharesAPfOnlyWhereNoOtherIsAsNear) {
    std::vector<NearNic> const nics{{on_node(10, 0), 8}, {on_node(11, 0), 8}, {on_node(12, 1), 8}};
    auto const placed =
        place_gpus({on_node(1, 0), on_node(2, 0), on_node(3, 1), on_node(4, 1)}, nics);
    EXPECT_NE(placed.at(0), placed.at(1));
    EXPECT_EQ(placed.at(2), 2U);
    EXPECT_EQ(placed.at(3), 2U) << "rather shared than over the link between the nodes";
}

TEST(Placement, IsEqualForEqualInput) {
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
    for (std::uint8_t i = 0; i < 8; ++i) {
        gpus.push_back(on_node(i, i / 4));
        nics.push_back({on_node(static_cast<std::uint8_t>(32 + i), i / 4), 2});
    }
    EXPECT_EQ(place_gpus(gpus, nics), place_gpus(gpus, nics));
}

PciPlace any_function(std::uint8_t number) {
    auto const node = *rc::gen::inRange(0, 3);
    auto const ports = *rc::gen::inRange(0, 3);
    std::vector<std::uint8_t> above;
    for (int i = 0; i < ports; ++i)
        above.push_back(static_cast<std::uint8_t>(*rc::gen::inRange(0x40, 0x44)));
    return function_at(number, static_cast<std::uint8_t>(0x10 * (node + 1)),
                       node == 2 ? std::nullopt : std::optional(node), above);
}

RC_GTEST_PROP(Placement, IsTheBestOfAll, ()) {
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
    auto const gpu_count = *rc::gen::inRange(1, 6);
    auto const nic_count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < gpu_count; ++i)
        gpus.push_back(any_function(static_cast<std::uint8_t>(0x80 + i)));
    for (int i = 0; i < nic_count; ++i)
        nics.push_back({any_function(static_cast<std::uint8_t>(0xa0 + i)),
                        static_cast<std::size_t>(*rc::gen::inRange(0, 4))});
    RC_ASSERT(badness(gpus, nics, place_gpus(gpus, nics)) == best_of_all(gpus, nics));
    for (auto& nic : nics) nic.free_vfs = 1;
    RC_ASSERT(best_of_each_set(gpus, nics) == best_of_all(gpus, nics));
}

}  // namespace
}  // namespace vfmgr
