// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet_host.hpp"

#include <gtest/gtest.h>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

TEST(FleetHost, Names) {
    for (char const* const name : {"h7", "gpu-3.rack2"})
        EXPECT_TRUE(can_be_a_fleet_hosts(name)) << name;
    for (char const* const name : {"", "H7", "a/b", "a\"b", "-a", "a b"})
        EXPECT_FALSE(can_be_a_fleet_hosts(name)) << name;
    EXPECT_FALSE(can_be_a_fleet_hosts(std::string(65, 'a')));
}

TEST(JoinToken, IsReadAsItIsWritten) {
    JoinToken const token{"ab12cd34", std::string(64, 'a'), std::string(64, 'c')};
    EXPECT_EQ(JoinToken::parse(to_string(token)).value(), token);
    for (auto const& wrong :
         {std::string(), std::string("vfj1."), to_string(token) + "0", to_string(token).substr(1),
          "vfj1.ab12cd34." + std::string(64, 'x') + "." + std::string(64, 'c')}) {
        auto const refused = JoinToken::parse(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().detail.find(std::string(64, 'a')), std::string::npos)
            << "the secret is in no error";
    }
}

TEST(JoinRequest, SaysWhereTheHostIs) {
    auto const pointer = [](std::string const& url) {
        nlohmann::json body{
            {"token", to_string(JoinToken{"ab12cd34", std::string(64, 'a'), std::string(64, 'c')})},
            {"name", "h1"},
            {"url", url},
            {"public_key", std::string(64, 'b')}};
        auto const read = from_json_document<JoinRequest>(body);
        return read ? std::string() : read.error().violations.front().pointer;
    };
    EXPECT_EQ(pointer("https://h1:8470"), "");
    EXPECT_EQ(pointer("https://[fd00::1]:8470"), "");
    for (char const* const wrong : {"http://h1:8470", "h1:8470", "https://", "https://h1:8470/"})
        EXPECT_EQ(pointer(wrong), "/url") << wrong;
}

}  // namespace
}  // namespace vfmgr
