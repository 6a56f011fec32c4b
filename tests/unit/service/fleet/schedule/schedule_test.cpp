// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/service/fleet/schedule/fleet_hosts.hpp"

namespace vfmgr::fleet {
namespace {

using test::all_of;
using test::of_train;
using test::training_host;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Ranked> rank(std::vector<HostSummary> const& hosts, FleetReservationSpec const& spec,
                         Taken const& taken = {}) {
    return schedule(all_of(hosts), {spec}, taken);
}
std::string reason_of(HostSummary const& host, FleetReservationSpec const& spec) {
    return rank({host}, spec).at(0).reason;
}
std::vector<std::string> names(std::vector<Ranked> const& ranked) {
    std::vector<std::string> all;
    for (auto const& one : ranked)
        if (one.fit) all.push_back(one.host);
    return all;
}
FleetReservationSpec one_per_rail(std::uint16_t count) {
    auto spec = of_train(count);
    spec.one_per_rail = true;
    return spec;
}
FleetReservationSpec near_gpus(std::uint16_t count) {
    auto spec = one_per_rail(count);
    spec.near = Near::gpu;
    return spec;
}
Time at(char const* text) {
    return parse_rfc3339(text).value();
}

TEST(Schedule, SaysWhatAHostLacks) {
    auto host = training_host("node1", 8, 1, 8);
    for (std::size_t i = 5; i < 8; ++i) host.rails[i].free_vfs = 0;
    EXPECT_EQ(reason_of(host, one_per_rail(8)),
              "has 5 free VFs of network train on 5 rails, 8 are needed on 8");
    EXPECT_EQ(reason_of(host, of_train(6)), "has 5 free VFs of network train, 6 are needed");
    auto spec = of_train(1);
    spec.network = "other";
    spec.pool = "rails";
    EXPECT_EQ(reason_of(host, spec), "has 0 free VFs of pool rails and network other, 1 is needed");
    host.rails[0].link_up = false;
    EXPECT_EQ(reason_of(host, of_train(5)),
              "has 4 free VFs of network train, 5 are needed; 1 more are of PFs without a link");
}

TEST(Schedule, SaysWhyAHostGetsNothingNew) {
    auto host = training_host("node1", 8, 8, 8);
    host.state_since = at("2026-01-31T12:00:00.000Z");
    host.as_of = at("2026-01-31T13:00:00.000Z");
    host.state_reason = "new switch";
    host.state = HostState::cordoned;
    EXPECT_EQ(reason_of(host, of_train(1)),
              "is cordoned since 2026-01-31T12:00:00.000Z: new switch");
    host.state = HostState::quarantined;
    EXPECT_THAT(reason_of(host, of_train(1)), HasSubstr("is quarantined since"));
    host.state = HostState::fenced;
    EXPECT_THAT(reason_of(host, of_train(1)), HasSubstr("is fenced since"));
    auto const unheard = "is not heard from since 2026-01-31T13:00:00.000Z: its VFs may be taken";
    host.state = HostState::unreachable;
    EXPECT_EQ(reason_of(host, of_train(1)), unheard);
    host.state = HostState::active;
    EXPECT_TRUE(rank({host}, of_train(1))[0].fit);
    host.stale = true;
    EXPECT_EQ(reason_of(host, of_train(1)), unheard);
}

TEST(Schedule, SaysWhatTheRequestExcludes) {
    auto host = training_host("node1", 8, 8, 8);
    host.labels = {{"zone", "a"}};
    auto spec = of_train(1);
    spec.hosts = {"node2"};
    auto const ranked = rank({host}, spec);
    EXPECT_EQ(ranked.at(0).reason, "is not among the hosts that the request names");
    EXPECT_EQ(ranked.at(1).reason, "is no host of this fleet");
    spec = of_train(1);
    spec.labels = {{"zone", "b"}};
    EXPECT_EQ(reason_of(host, spec), "has label zone=a");
    spec.labels = {{"row", "1"}};
    EXPECT_EQ(reason_of(host, spec), "has no label row");
    spec = of_train(1);
    spec.racks = {"r1"};
    EXPECT_EQ(reason_of(host, spec), "is in no rack");
    spec.racks = {};
    spec.same_rack = "job";
    EXPECT_EQ(reason_of(host, spec), "is in no rack, so it can't be in one with its group");
    host.rack = "r2";
    EXPECT_TRUE(rank({host}, spec)[0].fit);
    EXPECT_EQ(schedule(all_of({host}), {spec, "r1"}, {})[0].reason,
              "is in rack r2, and group job is in rack r1");
}

TEST(Schedule, SaysWhichIdentitiesAreLeft) {
    auto host = training_host("node1", 8, 8, 8);
    host.left.macs = 3;
    EXPECT_EQ(reason_of(host, of_train(4)), "has 3 MACs left, 4 are needed");
    EXPECT_TRUE(rank({host}, of_train(3))[0].fit);
    host.left = {};
    host.left.addresses["train"] = 2;
    EXPECT_EQ(reason_of(host, of_train(3)), "has 2 addresses of network train left, 3 are needed");
    for (auto& pf : host.rails) pf.link_layer = LinkLayer::infiniband;
    host.left.addresses.clear();
    host.left.macs = 0;
    host.left.guids = 7;
    EXPECT_EQ(reason_of(host, of_train(8)), "has 7 GUIDs left, 8 are needed");
    EXPECT_TRUE(rank({host}, of_train(7))[0].fit) << "InfiniBand needs no MACs";
}

TEST(Schedule, GivesEachGpuTheVfOfItsSwitch) {
    auto const ranked = rank({training_host("node1", 8, 1, 8)}, near_gpus(8));
    ASSERT_TRUE(ranked.at(0).fit);
    auto const& fit = *ranked[0].fit;
    ASSERT_EQ(fit.gpus.size(), 8U);
    for (auto const& share : fit.gpus) {
        EXPECT_EQ(share.pf.bus - share.gpu.bus, 0x30);
        EXPECT_EQ(share.distance, PciDistance::pix);
    }
    EXPECT_THAT(fit.vfs, testing::Each(testing::Field(&RailShare::vfs, 1)));
    EXPECT_EQ(ranked[0].reason,
              "has 8 free VFs of network train on 8 rails; 8 GPUs have theirs within PIX; 0 VFs of "
              "the host would be left");
}

TEST(Schedule, SaysWhichGpuHasNoVf) {
    auto host = training_host("node1", 8, 1, 8);
    host.rails[3].free_vfs = 0;
    auto spec = near_gpus(7);
    spec.within = PciDistance::pix;
    spec.gpus = 7;
    EXPECT_TRUE(rank({host}, spec)[0].fit);
    host.gpus[1].free = false;
    EXPECT_EQ(reason_of(host, spec), "GPU 0000:13:00.0 has no free VF within PIX");
    spec.within = std::nullopt;
    auto const fit = rank({host}, spec).at(0).fit;
    ASSERT_TRUE(fit);
    EXPECT_EQ(fit->distances.at(static_cast<std::size_t>(PciDistance::pxb)), 1)
        << "that of its node's other switch is near enough otherwise";
    spec.count = 9;
    spec.one_per_rail = false;
    spec.gpus = 8;
    host.rails[0].free_vfs = 8;
    EXPECT_EQ(reason_of(host, spec), "has 7 free GPUs, 8 are needed");
}

TEST(Schedule, CountsGpusThatShareTheirVfs) {
    auto host = training_host("node1", 2, 4, 8);
    for (auto& gpu : host.gpus) gpu.place.above = host.rails[0].place.above;
    host.rails[0].free_vfs = 1;
    auto spec = near_gpus(2);
    spec.within = PciDistance::pix;
    EXPECT_EQ(reason_of(host, spec),
              "1 of 2 free GPUs can get a VF of their own within PIX, 2 are needed");
}

TEST(Schedule, WantsAWholePartition) {
    auto host = training_host("node1", 8, 8, 8);
    for (std::size_t i = 0; i < 4; ++i)
        host.partitions["half"].push_back(host.gpus[i].place.address);
    auto spec = near_gpus(2);
    spec.partition = "half";
    auto const fit = rank({host}, spec).at(0).fit;
    ASSERT_TRUE(fit);
    EXPECT_EQ(fit->held, host.partitions["half"]) << "others can't use what is left of it";
    EXPECT_EQ(fit->gpus_left, 4U);
    host.gpus[3].free = false;
    EXPECT_EQ(reason_of(host, spec), "GPU 0000:13:00.0 of NVSwitch partition half is in use");
    spec.partition = "quarter";
    EXPECT_EQ(reason_of(host, spec), "has no NVSwitch partition quarter");
    host.partitions["quarter"] = {PciAddress{0, 0x99, 0, 0}};
    EXPECT_EQ(reason_of(host, spec), "lacks 1 of the 1 GPUs of NVSwitch partition quarter");
}

TEST(Schedule, PacksOrSpreads) {
    std::vector<HostSummary> const hosts{training_host("c", 8, 2, 8), training_host("a", 8, 8, 8),
                                         training_host("b", 8, 4, 8), training_host("d", 8, 4, 8)};
    auto spec = of_train(4);
    EXPECT_THAT(names(rank(hosts, spec)), ElementsAre("c", "b", "d", "a"));
    spec.strategy = HostStrategy::spread;
    EXPECT_THAT(names(rank(hosts, spec)), ElementsAre("a", "b", "d", "c"));
}

TEST(Schedule, PackLeavesGpusTogether) {
    std::vector<HostSummary> hosts{training_host("a", 8, 4, 8), training_host("b", 8, 4, 8)};
    for (std::size_t i = 4; i < 8; ++i) hosts[1].gpus[i].free = false;
    auto spec = near_gpus(4);
    EXPECT_THAT(names(rank(hosts, spec)), ElementsAre("b", "a")) << "all GPUs of a stay together";
}

TEST(Schedule, SpreadsOverRacks) {
    std::vector<HostSummary> hosts{training_host("a", 8, 4, 8), training_host("b", 8, 4, 8),
                                   training_host("c", 8, 1, 8)};
    hosts[0].rack = hosts[2].rack = "r1";
    hosts[1].rack = "r2";
    auto spec = of_train(8);
    spec.strategy = HostStrategy::spread;
    auto const ranked = rank(hosts, spec);
    EXPECT_THAT(names(ranked), ElementsAre("b", "a", "c"));
    EXPECT_THAT(ranked[0].reason, HasSubstr("50 % of rack r2 is used"));
}

TEST(Schedule, NearerIsBetterThanFuller) {
    std::vector<HostSummary> hosts{training_host("a", 8, 1, 8), training_host("b", 8, 8, 8)};
    hosts[0].rails[7].place = test::place_behind(0x47, 1, 6);
    EXPECT_THAT(names(rank(hosts, near_gpus(8))), ElementsAre("b", "a"));
    EXPECT_THAT(names(rank(hosts, one_per_rail(8))), ElementsAre("a", "b"));
}

TEST(Schedule, DoesNotChooseTheSameVfsAgain) {
    std::vector<HostSummary> hosts{training_host("a", 8, 1, 8), training_host("b", 8, 1, 8)};
    hosts[0].left.addresses["train"] = 8;
    auto const spec = near_gpus(4);
    Taken taken;
    std::vector<std::string> order;
    for (int i = 0; i < 5; ++i) {
        auto const first = chosen(rank(hosts, spec, taken), spec);
        if (!first) {
            EXPECT_EQ(first.error().problem, Problem::limit_exceeded);
            EXPECT_THAT(first.error().detail, HasSubstr("a has 0 free VFs of network train"));
            EXPECT_THAT(first.error().discreet->detail, testing::Not(HasSubstr("a has")));
            break;
        }
        order.push_back(first->host);
        taken.add(std::to_string(i), decision_of(*first, spec));
    }
    EXPECT_THAT(order, ElementsAre("a", "a", "b", "b"));
    taken.forget("1");
    auto const again = chosen(rank(hosts, spec, taken), spec);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->host, "a");
    taken.add("0", decision_of(*again, spec));
    EXPECT_EQ(taken.size(), 3U) << "a decision replaces that of the same id";
    EXPECT_EQ(taken.of("a")->vfs, 4U);
}

TEST(Schedule, RemembersWhereAGroupIs) {
    auto spec = of_train(1);
    spec.same_rack = "job";
    auto host = training_host("a", 8, 1, 8);
    host.rack = "r7";
    Taken taken;
    EXPECT_EQ(taken.rack_of_group("job"), std::nullopt);
    taken.add("x", decision_of(rank({host}, spec).at(0), spec));
    EXPECT_EQ(taken.rack_of_group("job"), "r7");
    EXPECT_EQ(taken.rack_of_group(""), std::nullopt);
}

TEST(Schedule, ListsTheChosenHostAndWhyNotTheOthers) {
    std::vector<HostSummary> const hosts{training_host("b", 8, 1, 8), training_host("a", 8, 1, 8),
                                         training_host("c", 2, 1, 8)};
    auto const candidates = candidates_of(rank(hosts, of_train(8)));
    ASSERT_EQ(candidates.size(), 3U);
    EXPECT_TRUE(candidates[0].chosen);
    EXPECT_EQ(candidates[0].host, "a");
    EXPECT_FALSE(candidates[1].chosen || candidates[2].chosen);
    EXPECT_EQ(candidates[2].reason, "has 2 free VFs of network train, 8 are needed");
    EXPECT_FALSE(candidates_of(rank({hosts[2]}, of_train(8))).at(0).chosen);
}

TEST(Schedule, NamesRails) {
    PciAddress const pf{0, 1, 0, 0};
    PciAddress const other{0, 2, 0, 0};
    Network first{"a", {}, {}, {}};
    Network second{"b", {}, {}, {}};
    first.pfs = {{other, {}}, {pf, {}}};
    second.pfs = {{pf, {}}};
    EXPECT_EQ(rail_of({{"rail", "7"}}, {first}, pf), "7");
    EXPECT_EQ(rail_of({}, {second, first}, pf), "a/1");
    EXPECT_EQ(rail_of({}, {second}, other), "0000:02:00.0");
}

}  // namespace
}  // namespace vfmgr::fleet
