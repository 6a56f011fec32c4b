// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "documents.hpp"

namespace vfmgr {
namespace {

using Mistakes = std::vector<Violation>;

Mistakes mistakes_in(std::string const& text) {
    return test::refusal_of<FleetMembership>(text).violations;
}

constexpr auto a_fleet = "33333333-3333-3333-3333-333333333333";

TEST(FleetMembership, NamesFleetHostUrlsAndCa) {
    EXPECT_EQ(mistakes_in(R"({"fleet": "33333333", "host": "a b", "urls": [], "ca": ""})"),
              (Mistakes{{"/fleet", "must be the UUID of a fleet, in small letters"},
                        {"/host", "must be letters, digits, '.', '-' and '_', at most 63"},
                        {"/urls", "must be 1 to 16"}}));
    for (auto const* const url : {"http://a", "https://", "https://a/b", "a:8480"})
        EXPECT_EQ(mistakes_in(std::string(R"({"ca": "", "host": "a", "fleet": ")") + a_fleet +
                              R"(", "urls": [")" + url + R"("]})"),
                  (Mistakes{{"/urls/0", "must be a URL such as https://fleet1.example:8480"}}))
            << url;
}

TEST(ReplicaName, IsAUriAndBack) {
    auto const uri = std::string("vfmgr://") + a_fleet + "/replica/fleet-1.b";
    auto const name = parse_replica_uri(uri);
    ASSERT_TRUE(name);
    EXPECT_EQ(*name, (ReplicaName{a_fleet, "fleet-1.b"}));
    EXPECT_EQ(to_uri(*name), uri);
    for (auto const& other :
         {std::string("vfmgr://a/replica/b"), std::string("vfmgr://") + a_fleet + "/replica/",
          std::string("vfmgr://") + a_fleet + "/replica/a/b", std::string("vfmgr://") + a_fleet,
          std::string("VFMGR://") + a_fleet + "/replica/a",
          std::string("vfmgr://") + a_fleet + "/replica/a:b",
          std::string("spiffe://") + a_fleet + "/replica/a", uri + std::string(64, 'a')})
        EXPECT_FALSE(parse_replica_uri(other)) << other;
}

}  // namespace
}  // namespace vfmgr
