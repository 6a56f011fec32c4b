// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/devlink.hpp"

#include <linux/devlink.h>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;

DevlinkDevice const card{"pci", "0000:3b:00.0"};
constexpr std::uint8_t type_u32 = 3;
constexpr std::uint8_t type_text = 5;
constexpr std::uint8_t type_flag = 6;

// {mode, data}, as the kernel's devlink_nl_param_fill() lays it out.
Bytes value(std::uint8_t mode, Bytes data) {
    return Bytes().nest(DEVLINK_ATTR_PARAM_VALUE,
                        data.put<std::uint8_t>(DEVLINK_ATTR_PARAM_VALUE_CMODE, mode));
}

Bytes parameter(char const* name, std::uint8_t type, Bytes const& values) {
    return Bytes()
        .text(DEVLINK_ATTR_BUS_NAME, "pci")
        .text(DEVLINK_ATTR_DEV_NAME, "0000:3b:00.0")
        .nest(DEVLINK_ATTR_PARAM, Bytes()
                                      .text(DEVLINK_ATTR_PARAM_NAME, name)
                                      .put<std::uint8_t>(DEVLINK_ATTR_PARAM_TYPE, type)
                                      .nest(DEVLINK_ATTR_PARAM_VALUES_LIST, values));
}

Bytes count(std::uint32_t number) {
    return Bytes().put<std::uint32_t>(DEVLINK_ATTR_PARAM_VALUE_DATA, number);
}

using Parameters = std::vector<DevlinkParameter>;

TEST(ParseParameter, HasAValueOfEachType) {
    EXPECT_EQ(parse_parameter(parameter("total_vfs", type_u32, value(2, count(16))).view(), card),
              (Parameters{{"total_vfs", DevlinkMode::permanent, "16"}}));
    auto const mode = Bytes().text(DEVLINK_ATTR_PARAM_VALUE_DATA, "smfs");
    EXPECT_EQ(
        parse_parameter(parameter("flow_steering_mode", type_text, value(0, mode)).view(), card),
        (Parameters{{"flow_steering_mode", DevlinkMode::runtime, "smfs"}}));
}

TEST(ParseParameter, AFlagIsTrueWhereItIs) {
    auto const there = Bytes().text(DEVLINK_ATTR_PARAM_VALUE_DATA, "");
    EXPECT_EQ(parse_parameter(parameter("enable_roce", type_flag, value(1, there)).view(), card),
              (Parameters{{"enable_roce", DevlinkMode::driverinit, "true"}}));
    EXPECT_EQ(parse_parameter(parameter("enable_roce", type_flag, value(1, {})).view(), card),
              (Parameters{{"enable_roce", DevlinkMode::driverinit, "false"}}));
}

TEST(ParseParameter, IsNothingOfAnotherDeviceOrOfWhatIsNotKnown) {
    auto const bytes = parameter("total_vfs", type_u32, value(2, count(16)));
    EXPECT_EQ(parse_parameter(bytes.view(), {"pci", "0000:3b:00.1"}), Parameters{});
    EXPECT_EQ(parse_parameter(parameter("x", 9, value(2, count(16))).view(), card), Parameters{});
    EXPECT_EQ(parse_parameter(parameter("x", type_u32, value(7, count(1))).view(), card),
              Parameters{});
    EXPECT_EQ(parse_parameter(parameter("x", type_u32, value(2, {})).view(), card), Parameters{});
    EXPECT_EQ(parse_parameter({}, card), Parameters{});
}

TEST(ListParameters, KnowsNoneOfAnUnknownDevice) {
    auto const none = list_parameters({"pci", "ffff:ff:1f.7"}, test::soon());
    ASSERT_TRUE(none) << none.error().detail;
    EXPECT_TRUE(none->empty());
}

}  // namespace
}  // namespace vfmgr
