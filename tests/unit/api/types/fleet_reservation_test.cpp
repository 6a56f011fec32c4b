// SPDX-License-Identifier: Apache-2.0
// Reservations of a fleet: what no host could accept is refused by the parser.
#include "api/types/fleet_reservation.hpp"

#include "api/types/network.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

std::vector<Violation> fleet_violations(char const* patch) {
    return test::refusal_of<FleetReservationSpec>(test::patched(R"({"network": "train"})", patch))
        .violations;
}

TEST(FleetReservationSpec, IsOfAPoolOrANetworkForALimitedTime) {
    using V = std::vector<Violation>;
    EXPECT_EQ(fleet_violations(R"({"network": null})"),
              (V{{"/pool", "is required, or a network"}}));
    EXPECT_EQ(fleet_violations(R"({"pool": "A", "name": "B"})"),
              (V{{"/name", rule_of_network_names}, {"/pool", rule_of_network_names}}));
    for (auto const* const patch :
         {R"({"count": 0})", R"({"count": 129})", R"({"seconds": 9})", R"({"seconds": 604801})",
          R"({"strategy": "best"})", R"({"near": "cpu"})", R"({"host": "node1"})"})
        EXPECT_EQ(fleet_violations(patch).size(), 1U) << patch;
    for (auto const* const text :
         {R"({"network": "a", "count": 128, "seconds": 604800, "strategy": "spread"})",
          R"({"pool": "a", "near": "gpu", "within": "SYS", "count": 2, "gpus": 2})"})
        test::expect_survives<FleetReservationSpec>(text);
}

TEST(FleetReservationSpec, HasOneVfAtLeastForEachGpu) {
    using V = std::vector<Violation>;
    EXPECT_EQ(fleet_violations(R"({"gpus": 1, "within": "PXB"})"),
              (V{{"/gpus", "needs near"}, {"/within", "needs near"}}));
    for (auto const* const patch :
         {R"({"near": "gpu", "count": 2, "gpus": 3})", R"({"near": "gpu", "gpus": 0})"})
        EXPECT_EQ(fleet_violations(patch),
                  (V{{"/gpus", "must be from 1 to count: each GPU gets a VF of its own"}}));
    EXPECT_EQ(fleet_violations(R"({"near": "gpu", "within": "unknown"})"),
              (V{{"/within", "must be one of SYS, NODE, PHB, PXB, PIX"}}));
}

TEST(FleetReservationSpec, NamesHostsOnceAndShortly) {
    auto const found = fleet_violations(
        R"({"hosts": ["a", "", "a"], "racks": ["r 1"], "labels": {"zone": "", "b": "c"},
            "same_rack": "-", "partition": ""})");
    std::vector<std::string> places;
    for (auto const& violation : found) places.push_back(violation.pointer);
    EXPECT_EQ(places, (std::vector<std::string>{"/hosts/1", "/hosts/2", "/racks/0", "/labels/zone",
                                                "/same_rack", "/partition"}));
    nlohmann::json many = {{"network", "a"}, {"hosts", nlohmann::json::array()}};
    for (int i = 0; i < 1025; ++i) many["hosts"].push_back("h" + std::to_string(i));
    auto const refused = test::refusal_of<FleetReservationSpec>(many.dump());
    ASSERT_EQ(refused.violations.size(), 1U);
    EXPECT_EQ(refused.violations[0], (Violation{"/hosts", "must be at most 1024"}));
}

}  // namespace
}  // namespace vfmgr
