// SPDX-License-Identifier: Apache-2.0
// Requests for a card's firmware: only the settings that vfmgr knows, with values that mlxconfig
// could accept.
#include "api/types/firmware.hpp"

#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;

constexpr char const* least_firmware = R"({"settings": {"SRIOV_EN": true}})";
constexpr auto read_firmware_request = &test::refusal_of<FirmwareRequest>;

class FirmwareRefuses : public testing::TestWithParam<Refused> {};
TEST_P(FirmwareRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Members, FirmwareRefuses,
    testing::Values(
        Refused{"no_settings", read_firmware_request, "", "{}", "/settings", "is required"},
        Refused{"empty_settings", read_firmware_request, "", R"({"settings": {}})", "/settings",
                "must name at least one setting"},
        Refused{"unknown_setting", read_firmware_request, least_firmware,
                R"({"settings": {"INTERNAL_CPU_MODEL": 1}})", "/settings/INTERNAL_CPU_MODEL",
                "is not known here"},
        Refused{"no_boolean", read_firmware_request, least_firmware,
                R"({"settings": {"SRIOV_EN": 1}})", "/settings/SRIOV_EN", "must be true or false"},
        Refused{"too_many_vfs", read_firmware_request, least_firmware,
                R"({"settings": {"NUM_OF_VFS": 65536}})", "/settings/NUM_OF_VFS",
                "must be a whole number from 0 to 65535"},
        Refused{"no_port_type", read_firmware_request, least_firmware,
                R"({"settings": {"LINK_TYPE_P1": "eth"}})", "/settings/LINK_TYPE_P1",
                "must be one of IB, ETH, VPI"}),
    test::name_of);

TEST(FirmwareSettings, AreToldToPeopleAndToTheTool) {
    FirmwareSettings const all{true, 16, PortType::eth, PortType::ib, false};
    EXPECT_EQ(assignments(all),
              (std::vector<std::string>{"SRIOV_EN=True", "NUM_OF_VFS=16", "LINK_TYPE_P1=ETH",
                                        "LINK_TYPE_P2=IB", "ATS_ENABLED=False"}));
    EXPECT_EQ(numeric_assignments(all),
              (std::vector<std::string>{"SRIOV_EN=1", "NUM_OF_VFS=16", "LINK_TYPE_P1=2",
                                        "LINK_TYPE_P2=1", "ATS_ENABLED=0"}));
}

TEST(FirmwareSettings, AreComparedByMember) {
    FirmwareSettings const is{true, 8, PortType::eth, {}, {}};
    FirmwareSettings const expected{true, 16, {}, {}, false};
    EXPECT_EQ(differing(expected, is), (FirmwareSettings{{}, 16, {}, {}, false}));
    EXPECT_EQ(only_named(is, expected), (FirmwareSettings{true, 8, {}, {}, {}}));
    EXPECT_EQ(overlay(is, expected), (FirmwareSettings{true, 16, PortType::eth, {}, false}));
    EXPECT_TRUE(empty(FirmwareSettings{}));
    EXPECT_FALSE(empty(expected));
}

}  // namespace
}  // namespace vfmgr
