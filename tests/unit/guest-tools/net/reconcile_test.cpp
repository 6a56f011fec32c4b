// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/resident.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "guest-tools/net/find_vf.hpp"
#include "guest-tools/net/ib_port.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

MacAddress const vf_mac = *MacAddress::parse("52:54:00:11:22:33");

Netdev netdev(int ifindex, std::string name) {
    Netdev made;
    made.ifindex = ifindex;
    made.name = std::move(name);
    made.hardware_type = 1;
    made.mac = vf_mac;
    made.mtu = 9000;
    made.up = true;
    made.parent_device = "0000:05:00.0";
    return made;
}

GuestAttachment requested() {
    GuestAttachment expected;
    expected.attachment = "3f9c2b1d";
    expected.mac = vf_mac;
    expected.address = *IpAddress::parse("192.168.100.10");
    expected.mtu = 9000;
    return expected;
}

Configured had() {
    Configured configured;
    configured.attachment = "3f9c2b1d";
    configured.mac = vf_mac;
    configured.ifname = "eth1";
    configured.ifindex = 3;
    configured.address = *IpAddress::parse("192.168.100.10");
    configured.mtu = 9000;
    configured.rdma_device = "rxe_3f9c2b1d";
    configured.rdma_device_ours = true;
    configured.complete = true;
    return configured;
}

TEST(FindVf, TakesThePciFunctionNotWhatSharesItsMac) {
    auto bond = netdev(2, "bond0");
    bond.kind = "bond";
    auto standby = netdev(3, "eth0");
    standby.parent_device = "virtio0";
    auto ipoib = netdev(4, "ib0");
    ipoib.hardware_type = 32;
    auto other = netdev(5, "eth9");
    other.mac = MacAddress::parse("52:54:00:11:22:34").value();
    std::vector<Netdev> netdevs{bond, standby, ipoib, other};
    EXPECT_EQ(find_vf(netdevs, requested()), nullptr);
    netdevs.push_back(netdev(6, "eth1"));
    ASSERT_NE(find_vf(netdevs, requested()), nullptr);
    EXPECT_EQ(find_vf(netdevs, requested())->name, "eth1");
}

constexpr Guid vf_guid{0x0202'c9ff'fe11'0002};

Netdev ipoib(int ifindex, std::string name) {
    auto made = netdev(ifindex, std::move(name));
    made.hardware_type = 32;
    made.mac.reset();
    made.port_guid = vf_guid;
    made.kind = "ipoib";
    made.pkey = 0xffff;
    return made;
}

GuestAttachment requested_on_infiniband() {
    auto expected = requested();
    expected.mac.reset();
    expected.guid = vf_guid;
    return expected;
}

TEST(FindVf, TakesThePortWithTheGuidNotWhatWasMadeOnIt) {
    auto of_a_partition = ipoib(2, "ib0.8001");
    of_a_partition.parent_ifindex = 6;
    auto other = ipoib(3, "ib1");
    other.port_guid = Guid{0x0202'c9ff'fe11'0003};
    auto bond = ipoib(4, "bond0");
    bond.kind = "bond";
    bond.parent_device = "none";
    auto ethernet = netdev(5, "eth1");
    ethernet.mac.reset();  // as the attachment has none
    std::vector<Netdev> netdevs{of_a_partition, other, bond, ethernet};
    EXPECT_EQ(find_vf(netdevs, requested_on_infiniband()), nullptr);
    netdevs.push_back(ipoib(6, "ib0"));
    ASSERT_NE(find_vf(netdevs, requested_on_infiniband()), nullptr);
    EXPECT_EQ(find_vf(netdevs, requested_on_infiniband())->name, "ib0");
    EXPECT_EQ(find_vf({ipoib(6, "ib0")}, requested()), nullptr);
}

TEST(Compare, OnInfiniBandByTheGuid) {
    auto const expected = requested_on_infiniband();
    auto configured = had();
    configured.mac.reset();
    configured.guid = vf_guid;
    EXPECT_THAT(compare({expected}, {configured}, {ipoib(3, "eth1")}).ready, ElementsAre(expected));
    configured.guid = Guid{0x0202'c9ff'fe11'0003};
    EXPECT_THAT(compare({expected}, {configured}, {ipoib(3, "eth1")}).ready, IsEmpty());
}

TEST(MissingVf, IsNamedByWhatItWasSearchedFor) {
    EXPECT_THAT(no_netdev(requested()).detail,
                testing::StartsWith("this VM has no netdev with MAC 52:54:00:11:22:33"));
    EXPECT_THAT(no_netdev(requested_on_infiniband()).detail,
                testing::StartsWith("this VM has no netdev with port GUID "
                                    "02:02:c9:ff:fe:11:00:02"));
}

TEST(Compare, ANewVfIsConfigured) {
    auto const work = compare({requested()}, {}, {netdev(3, "eth1")});
    EXPECT_THAT(work.configure, ElementsAre(ToConfigure{requested(), netdev(3, "eth1")}));
    EXPECT_THAT(work.clean_up, IsEmpty());
    EXPECT_THAT(work.ready, IsEmpty());
}

TEST(Compare, AConfiguredOneIsLeftAlone) {
    auto const work = compare({requested()}, {had()}, {netdev(3, "eth1")});
    EXPECT_THAT(work.ready, ElementsAre(requested()));
    EXPECT_THAT(work.configure, IsEmpty());
    EXPECT_THAT(work.clean_up, IsEmpty());
}

TEST(Compare, AnAbsentNetdevIsAwaited) {
    auto const work = compare({requested()}, {}, {});
    EXPECT_THAT(work.missing, ElementsAre(requested()));
}

TEST(Compare, AVfThatWentIsCleanedUpAfter) {
    auto const gone_from_config = compare({}, {had()}, {netdev(3, "eth1")});
    EXPECT_THAT(gone_from_config.clean_up, ElementsAre(had()));
    auto const unplugged = compare({requested()}, {had()}, {});
    EXPECT_THAT(unplugged.clean_up, ElementsAre(had()));
    EXPECT_THAT(unplugged.missing, ElementsAre(requested()));
}

struct Change {
    char const* name;
    void (*make)(GuestAttachment&, Configured&, Netdev&);
};
void PrintTo(Change const& change, std::ostream* out) {
    *out << change.name;
}

class EachChange : public testing::TestWithParam<Change> {};

TEST_P(EachChange, IsConfiguredAnew) {
    auto expected = requested();
    auto configured = had();
    auto device = netdev(3, "eth1");
    GetParam().make(expected, configured, device);
    auto const work = compare({expected}, {configured}, {device});
    EXPECT_THAT(work.clean_up, ElementsAre(configured));
    EXPECT_THAT(work.configure, ElementsAre(ToConfigure{expected, device}));
    EXPECT_THAT(work.ready, IsEmpty());
}

constexpr Change changes[] = {
    {"Address",
     [](auto& expected, auto&, auto&) { expected.address = *IpAddress::parse("192.168.100.11"); }},
    {"Prefix", [](auto& expected, auto&, auto&) { expected.prefix_length = 16; }},
    {"Mtu", [](auto& expected, auto&, auto&) { expected.mtu = 1500; }},
    {"PluggedInAnew", [](auto&, auto&, auto& device) { device.ifindex = 7; }},
    {"Renamed", [](auto&, auto&, auto& device) { device.name = "ens5"; }},
    {"SetDown", [](auto&, auto&, auto& device) { device.up = false; }},
    {"MtuChangedByHand", [](auto&, auto&, auto& device) { device.mtu = 1500; }},
    {"Interrupted", [](auto&, auto& configured, auto&) { configured.complete = false; }},
};
INSTANTIATE_TEST_SUITE_P(Compare, EachChange, testing::ValuesIn(changes),
                         [](auto const& one) { return std::string(one.param.name); });

void put(fs::path const& file, std::string const& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

TEST(State, SurvivesARestart) {
    test::TemporaryFolder const folder;
    StateFolder const state(folder.path() / "state");
    EXPECT_THAT(state.load(), IsEmpty());
    ASSERT_TRUE(state.save(had()));
    EXPECT_THAT(state.load(), ElementsAre(had()));
    auto changed = had();
    changed.complete = false;
    ASSERT_TRUE(state.save(changed));
    EXPECT_THAT(state.load(), ElementsAre(changed));
    put(folder.file("state/broken.json"), "{");
    EXPECT_THAT(state.load(), ElementsAre(changed));
    state.forget("3f9c2b1d");
    EXPECT_THAT(state.load(), IsEmpty());
}

TEST(State, AnUnwritableFolderIsNamed) {
    test::TemporaryFolder const folder;
    put(folder.file("file"), "");
    auto const saved = StateFolder(folder.file("file/state")).save(had());
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().detail,
                testing::HasSubstr("/file/state/3f9c2b1d.json can't be written"));
}

TEST(Sysfs, DriverlessFunctionsExplainAMissingNetdev) {
    test::TemporaryFolder const folder;
    fs::path const devices = folder.file("bus/pci/devices");
    put(devices / "0000:05:00.0/class", "0x020000\n");
    put(devices / "0000:05:00.0/vendor", "0x8086\n");
    put(devices / "0000:05:00.0/device", "0x10ca\n");
    put(devices / "0000:00:02.0/class", "0x020000\n");
    put(devices / "0000:00:02.0/driver/module", "");
    put(devices / "0000:00:03.0/class", "0x030000\n");
    EXPECT_THAT(driverless_functions(folder.path()), ElementsAre("0000:05:00.0 [8086:10ca]"));
    EXPECT_THAT(driverless_functions(folder.file("none")), IsEmpty());
}

TEST(Sysfs, AnRdmaPartIsAwaited) {
    test::TemporaryFolder const folder;
    fs::path const net = folder.file("class/net");
    put(net / "eth0/device/mlx5_core.rdma.0/uevent", "");
    put(net / "eth1/device/mlx5_core.eth.1/uevent", "");
    put(net / "eth2/device/ice.roce.0/uevent", "");
    EXPECT_TRUE(expects_rdma_device(folder.path(), "eth0"));
    EXPECT_FALSE(expects_rdma_device(folder.path(), "eth1"));
    EXPECT_TRUE(expects_rdma_device(folder.path(), "eth2"));
    EXPECT_FALSE(expects_rdma_device(folder.path(), "eth3"));
}

TEST(Sysfs, APortIsFoundByItsGuidWithItsPkeys) {
    test::TemporaryFolder const folder;
    fs::path const ports = folder.file("class/infiniband/mlx5_1/ports");
    put(folder.file("class/infiniband/mlx5_0/ports/1/gids/0"),
        "fe80:0000:0000:0000:0202:c9ff:fe11:0001\n");
    put(ports / "1/gids/0", "fe80:0000:0000:0000:0202:c9ff:fe11:0002\n");
    for (auto const& [index, pkey] : {std::pair("0", "0xffff"), std::pair("1", "0x0000"),
                                      std::pair("2", "0x8001"), std::pair("3", "0x0000")})
        put(ports / "1/pkeys" / index, std::string(pkey) + "\n");
    EXPECT_EQ(find_ib_port(folder.path(), vf_guid), (IbPort{"mlx5_1", "0xffff 0x8001"}));
    EXPECT_EQ(find_ib_port(folder.path(), Guid{0x0202'c9ff'fe11'0003}), std::nullopt);
    EXPECT_EQ(port_facts(folder.path(), requested_on_infiniband()).at("pkeys"), "0xffff 0x8001");
    EXPECT_THAT(port_facts(folder.path(), requested()), IsEmpty());
}

TEST(Modules, ALoadedOneIsEnoughAMissingOneIsNamed) {
    test::TemporaryFolder const folder;
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    put(folder.file("module/rdma_rxe/refcnt"), "0");
    EXPECT_TRUE(need_module(folder.path(), "rdma_rxe", deadline));
    auto const missing = need_module(folder.path(), "vfmgr_no_such_module", deadline);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().problem, Problem::unsupported);
    EXPECT_THAT(missing.error().detail,
                testing::HasSubstr("the kernel module vfmgr_no_such_module is not loaded"));
    for (auto const* remedy : {"Ubuntu: linux-modules-extra-", "RHEL: kernel-modules-extra",
                               "modprobe vfmgr_no_such_module"})
        EXPECT_THAT(missing.error().remedy, testing::HasSubstr(remedy));
}

}  // namespace
}  // namespace vfmgr::guest
