// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/firmware.hpp"

#include <gtest/gtest.h>

namespace vfmgr::checks {
namespace {

FirmwareValue value(std::string text, std::uint64_t number) {
    return {std::move(text), number};
}

TEST(FirmwareConfiguration, HasThreeColumns) {
    auto const read = parse_firmware_configuration(R"(
Device #1:
----------

Device type:    ConnectX7
Name:           MCX715105AS-WEA_Ax
Description:    NVIDIA ConnectX-7; Device: none
Device:         0001:81:00.0

Configurations:                              Default         Current         Next Boot
         MEMIC_SIZE_LIMIT                    _256KB(1)       _256KB(1)       DISABLED(0)
*        NUM_OF_VFS                          0               16              32
         PCI_DOWNSTREAM_PORT_OWNER           Array[0..15]    Array[0..15]    Array[0..15]
*        OWNER[4]                            DEVICE_DEFAULT(0)HOST_0(1) 164
The '*' shows parameters with next value different from default/current value.
)");
    EXPECT_EQ(read.device_type, "ConnectX7");
    EXPECT_EQ(read.device, "0001:81:00.0");
    EXPECT_TRUE(read.shows_current);
    ASSERT_EQ(read.parameters.size(), 4U);
    auto const* const count = read.find("NUM_OF_VFS");
    ASSERT_NE(count, nullptr);
    EXPECT_EQ(count->by_default, value("0", 0));
    EXPECT_EQ(count->current, value("16", 16));
    EXPECT_EQ(count->next, value("32", 32));
    EXPECT_TRUE(count->pending());
    EXPECT_FALSE(read.find("PCI_DOWNSTREAM_PORT_OWNER")->pending());
    EXPECT_EQ(read.find("OWNER[4]")->current, value("HOST_0", 1));
    EXPECT_EQ(read.find("NUM_OF"), nullptr);
}

TEST(FirmwareConfiguration, HasTwoColumnsOnConnectX3) {
    auto const read = parse_firmware_configuration(
        "Configurations:                  Default         Next Boot\n"
        "   LINK_TYPE_P1                  VPI(3)          ETH(2)  \n"
        "   BOOT_RETRY_CNT_P1                   0");
    EXPECT_FALSE(read.shows_current);
    ASSERT_EQ(read.parameters.size(), 1U);
    EXPECT_EQ(read.parameters[0].next, value("ETH", 2));
    EXPECT_FALSE(read.parameters[0].current);
    EXPECT_FALSE(read.parameters[0].pending());
}

TEST(FirmwareConfiguration, HasOneColumnWithOrWithoutItsName) {
    for (auto const* header : {"Configurations:        Next Boot\n", "Configurations:\n"}) {
        auto const read = parse_firmware_configuration(
            std::string(header) + "        SRIOV_EN            True(1)   \r\n        X    0x1F\n");
        ASSERT_EQ(read.parameters.size(), 2U) << header;
        EXPECT_EQ(read.parameters[0].next, value("True", 1));
        EXPECT_EQ(read.parameters[1].next, value("0x1F", 31));
        EXPECT_FALSE(read.parameters[0].by_default);
    }
}

TEST(FirmwareConfiguration, IsOfTheFirstDevice) {
    auto const read = parse_firmware_configuration(
        "Device #1:\nDevice: a\nConfigurations: Next Boot\n A 1\nDevice #2:\n B 2\n");
    ASSERT_EQ(read.parameters.size(), 1U);
    EXPECT_EQ(read.parameters[0].name, "A");
}

TEST(FirmwareConfiguration, IsNothingOfAComplaint) {
    EXPECT_TRUE(parse_firmware_configuration("-E- Failed to open the device\n").parameters.empty());
    EXPECT_TRUE(parse_firmware_configuration("Configurations: Next Boot  New\n A 1 2\n")
                    .parameters.empty());
}

TEST(FirmwareValue, IsComparedByNumber) {
    EXPECT_TRUE(value("LID", 1).same_as(value("GID", 1)));
    EXPECT_FALSE(value("GID", 0).same_as(value("GID", 1)));
    EXPECT_TRUE((FirmwareValue{"N/A", {}}.same_as({"N/A", {}})));
    EXPECT_EQ(to_string(value("True", 1)), "True(1)");
    EXPECT_EQ(to_string(value("16", 16)), "16");
}

}  // namespace
}  // namespace vfmgr::checks
