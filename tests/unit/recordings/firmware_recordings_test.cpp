// SPDX-License-Identifier: Apache-2.0
// Output of mstconfig and mlxconfig from real machines, PCI configuration spaces, and GIDs and
// GUIDs as tools print them.
#include "api/types/addresses.hpp"
#include "tests/unit/recordings/recordings.hpp"
#include "vfmgr/machine/firmware.hpp"
#include "vfmgr/machine/pci_config.hpp"
#include "vfmgr/machine/rdma_ports.hpp"

namespace vfmgr::checks::recordings {
namespace {

using testing::HasSubstr;
using testing::Not;

class FirmwareRecordings : public Recordings {
  protected:
    static std::string output(std::string const& name) { return content("01-firmware/" + name); }

    // A card whose firmware reports this.
    static Facts card(Function const& function, std::string const& out) {
        auto facts = machine_with({function});
        facts.commands["mstconfig -e -d " + function.address + " q"] = {out, {}, 0, 0};
        return facts;
    }
};

TEST_F(FirmwareRecordings, PendingIsWhatDiffersFromNow) {
    auto const out = output("cx4lx-dell-ndc-default-current-next.txt");
    auto const firmware = parse_firmware_configuration(out);
    EXPECT_TRUE(firmware.shows_current);
    EXPECT_EQ(firmware.parameters.size(), 154U);
    EXPECT_EQ(firmware.find("LINK_TYPE_P1"), nullptr);
    auto const facts =
        card({.address = "0000:19:00.0", .device = 0x1015, .driver = "mlx5_core"}, out);
    auto const told = said(facts, "sriov.firmware");
    EXPECT_THAT(told, HasSubstr("failed   sriov.firmware 0000:19:00.0"));
    EXPECT_THAT(told, HasSubstr("NUM_OF_VFS 0, then 4; SRIOV_EN False(0), then True(1)"));
}

// And a card without LINK_TYPE_* has Ethernet only, which is not a fault.
TEST_F(FirmwareRecordings, EthernetOnlyCardsAreWell) {
    for (auto const* const name :
         {"cx4lx-mcx4121a-full-query.txt", "cx4lx-mstconfig-query-and-empty-infiniband.txt"}) {
        auto out = output(name);
        out.erase(0, out.rfind("Device #1:"));  // the output of another tool comes before it
        auto const firmware = parse_firmware_configuration(out);
        EXPECT_FALSE(firmware.shows_current) << name;
        ASSERT_NE(firmware.find("NUM_OF_VFS"), nullptr) << name;
        EXPECT_EQ(firmware.find("NUM_OF_VFS")->next->number, 8U) << name;
        EXPECT_EQ(firmware.find("SRIOV_EN")->next->number, 1U) << name;
        auto const facts = card(
            {.address = "0000:01:00.0", .device = 0x1015, .total_vfs = 8, .driver = "mlx5_core"},
            out);
        auto const told = said(facts, "sriov.firmware");
        EXPECT_THAT(told, HasSubstr("ok       sriov.firmware 0000:01:00.0")) << name;
        EXPECT_THAT(told, HasSubstr("Ethernet only")) << name;
        EXPECT_THAT(said(facts, "port.link_layer"), Not(HasSubstr("failed  "))) << name;
    }
}

TEST_F(FirmwareRecordings, NoRdmaDeviceThoughTheDriverIsLoaded) {
    auto facts = card({.address = "0000:01:00.0", .device = 0x1015, .driver = "mlx5_core"},
                      output("cx4lx-mstconfig-query-and-empty-infiniband.txt"));
    facts.folders["/sys/class/infiniband"] = {};
    facts.folders["/sys/module"].names = {"mlx5_core", "mlx5_ib"};
    EXPECT_THAT(said(facts, "stack.driver"),
                HasSubstr("0000:01:00.0 has no RDMA device, though mlx5_ib is loaded"));
}

TEST_F(FirmwareRecordings, ConnectX3HasNoCurrentColumn) {
    auto const firmware =
        parse_firmware_configuration(output("cx3pro-default-next-two-columns.txt"));
    EXPECT_FALSE(firmware.shows_current);
    ASSERT_NE(firmware.find("NUM_OF_VFS"), nullptr);
    EXPECT_EQ(firmware.find("NUM_OF_VFS")->by_default->number, 16U);
    EXPECT_FALSE(firmware.find("NUM_OF_VFS")->current);
    EXPECT_EQ(to_string(*firmware.find("LINK_TYPE_P2")->next), "VPI(3)");
    EXPECT_EQ(firmware.find("BOOT_RETRY_CNT_P1"), nullptr);  // truncated, so left out
    for (auto const& parameter : firmware.parameters) EXPECT_FALSE(parameter.pending());
}

TEST_F(FirmwareRecordings, ValuesAreComparedByNumber) {
    auto const text = output("pending-reboot-before-and-after-reset.txt");
    auto const reset = text.find("mlxfwreset");
    auto const before = parse_firmware_configuration(text.substr(0, reset));
    auto const after = parse_firmware_configuration(text.substr(reset));
    ASSERT_NE(before.find("SRIOV_IB_ROUTING_MODE_P1"), nullptr);
    EXPECT_TRUE(before.find("SRIOV_IB_ROUTING_MODE_P1")->pending());
    ASSERT_NE(after.find("SRIOV_IB_ROUTING_MODE_P1"), nullptr);
    EXPECT_FALSE(after.find("SRIOV_IB_ROUTING_MODE_P1")->pending());
}

TEST_F(FirmwareRecordings, StarIsNotPending) {
    auto const firmware = parse_firmware_configuration(output("cx5-hpe-star-advanced-pci.txt"));
    ASSERT_NE(firmware.find("ADVANCED_PCI_SETTINGS"), nullptr);
    EXPECT_EQ(firmware.find("ADVANCED_PCI_SETTINGS")->current->text, "True");
    for (auto const& parameter : firmware.parameters) EXPECT_FALSE(parameter.pending());
}

TEST_F(FirmwareRecordings, StarsAndArrays) {
    auto text = output("star-and-array-forms.txt");
    std::vector<FirmwareConfiguration> all;
    for (std::size_t end = 0; end != text.npos; text.erase(0, end == text.npos ? 0 : end + 6)) {
        end = text.find("=====\n");
        all.push_back(parse_firmware_configuration(text.substr(0, end)));
    }
    ASSERT_EQ(all.size(), 6U);
    EXPECT_FALSE(all[0].find("KEEP_IB_LINK_UP_P2")->pending());
    EXPECT_TRUE(all[0].find("MEMIC_SIZE_LIMIT")->pending());
    EXPECT_EQ(all[0].find("ESWITCH_HAIRPIN_DESCRIPTORS")->next->text, "Array[0..7]");
    EXPECT_EQ(all[1].find("ESWITCH_HAIRPIN_DESCRIPTORS[7]")->current->number, 128U);
    EXPECT_EQ(all[2].device_type, "BlueField3");
    EXPECT_TRUE(all[4].find("PCI_DOWNSTREAM_PORT_OWNER[0]")->pending());
    EXPECT_FALSE(all[4].find("PCI_DOWNSTREAM_PORT_OWNER[2]")->pending());
    EXPECT_EQ(all[5].find("PLAIN_FORMAT_PARAM")->next->number, 128U);
}

TEST_F(FirmwareRecordings, LockedDownHostStillHasItsVfs) {
    auto facts = machine_with(
        {{.address = "0000:01:00.0", .device = 0x1017, .total_vfs = 8, .driver = "mlx5_core"}});
    facts.files["/sys/kernel/security/lockdown"] = {"none [integrity] confidentiality\n", 0};
    facts.commands["mstconfig -e -d 0000:01:00.0 q"] = {
        {}, output("cx5-lockdown-semaphore-error.txt"), 1, 0};
    EXPECT_THAT(said(facts, "stack.lockdown"), HasSubstr("SR-IOV is on already"));
    auto const told = said(facts, "sriov.firmware");
    EXPECT_THAT(told, HasSubstr("unknown  sriov.firmware 0000:01:00.0"));
    EXPECT_THAT(told, HasSubstr("Operation not permitted"));
    EXPECT_THAT(told, HasSubstr("with up to 8 VFs"));
}

// "Next Boot" and "New" are a question before something is set, and not a state; one column alone
// does not show what holds now; lines without their header, filtered by grep, are not guessed at.
TEST_F(FirmwareRecordings, WhatIsNoTableIsNotRead) {
    EXPECT_TRUE(
        parse_firmware_configuration(output("cx6-ib-set-and-link-keys.txt")).parameters.empty());
    auto const text = output("cx7-mst-status-link-fw-four-functions.txt");
    auto const setting = text.find("Applying... Done!");
    ASSERT_NE(setting, text.npos);
    auto const asked = text.rfind("Device #1:", setting);
    EXPECT_TRUE(parse_firmware_configuration(text.substr(asked)).parameters.empty());
    EXPECT_EQ(parse_firmware_configuration(text.substr(asked)).device, "05:00.0");
    auto const vpi = parse_firmware_configuration(output("cx4-vpi-lenovo-mst-flint-mlxconfig.txt"));
    ASSERT_NE(vpi.find("LINK_TYPE_P1"), nullptr);
    EXPECT_EQ(to_string(*vpi.find("LINK_TYPE_P1")->next), "ETH(2)");
    EXPECT_FALSE(vpi.shows_current);
}

class PciRecordings : public Recordings {};

TEST_F(PciRecordings, HexadecimalOfLspciAnswers) {
    auto const text = content("03-rdma-devlink-pci/lspci-vvv-x-cx3.txt");
    static std::regex const row("([0-9a-f]{2,3}): ((?:[0-9a-f]{2} ?){16})");
    std::string bytes;
    for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at) {
        std::istringstream cells((*at)[2]);
        for (std::string cell; cells >> cell;)
            bytes += static_cast<char>(std::stoul(cell, nullptr, 16));
    }
    auto const space = parse_pci_configuration(bytes);
    ASSERT_TRUE(space) << bytes.size();
    EXPECT_TRUE(space->answers);
}

TEST_F(PciRecordings, WholeSpacesOfLibvirtsTests) {
    for (auto const& name : all_names()) {
        if (!name.ends_with(".config")) continue;
        auto const space = parse_pci_configuration(content(name));
        ASSERT_TRUE(space) << name;
        EXPECT_TRUE(space->answers) << name;
    }
}

class AddressRecordings : public Recordings {};

// show_gids prints the IPv4 address that is in a GID beside it.
TEST_F(AddressRecordings, GidsHoldTheAddressesBesideThem) {
    std::istringstream lines(content("03-rdma-devlink-pci/show_gids-one-port.txt"));
    int gids = 0, addresses = 0;
    for (std::string line; std::getline(lines, line);) {
        std::vector<std::string> fields;
        std::istringstream in(line);
        for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
        if (fields.size() < 6 || fields[0] != "mlx5_0") continue;
        ++gids;
        auto const address = gid_address(fields[3]);
        ASSERT_TRUE(address) << line;
        auto ipv4 = fields[4];
        ipv4.erase(ipv4.find_last_not_of(' ') + 1);
        if (ipv4.empty()) {
            EXPECT_EQ(address->family, IpAddress::Family::v6) << line;
            continue;
        }
        ++addresses;
        EXPECT_EQ(to_string(*address), ipv4);
    }
    EXPECT_EQ(gids, 4);
    EXPECT_EQ(addresses, 2);
}

TEST_F(AddressRecordings, GuidsOfIbvDevinfoAreGuids) {
    static std::regex const guid("(node|sys_image)_guid:\\s+([0-9a-f:]+)");
    for (auto const& name : all_names()) {
        if (name.find("ibv_devinfo-") == name.npos) continue;
        auto const text = content(name);
        std::size_t read = 0;
        for (std::sregex_iterator at(text.begin(), text.end(), guid), end; at != end; ++at, ++read)
            EXPECT_TRUE(Guid::parse((*at)[2].str())) << name << " " << (*at)[2];
        EXPECT_GE(read, 2U) << name;
    }
    // A SoftRoCE device's second GID is its IPv4 address.
    constexpr auto gid = "0000:0000:0000:0000:0000:ffff:0a0b:0bfb";
    auto const address = gid_address(gid);
    ASSERT_TRUE(address);
    EXPECT_EQ(to_string(*address), "10.11.11.251");
    EXPECT_THAT(content("03-rdma-devlink-pci/ibv_devinfo-v-rxe0.txt"), HasSubstr(gid));
}

}  // namespace
}  // namespace vfmgr::checks::recordings
