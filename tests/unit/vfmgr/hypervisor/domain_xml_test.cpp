// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/domain_xml.hpp"
#include "shorthand.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using test::pci;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string domain(std::string const& devices, std::string const& machine = "pc-q35-7.2") {
    return "<domain type='kvm' id='4'><name>db1</name>"
           "<uuid>0b0b0b0b-1111-2222-3333-444444444444</uuid><os><type arch='x86_64' machine='" +
           machine + "'>hvm</type></os><devices>" + devices + "</devices></domain>";
}

std::string root_port(int index, std::string const& inside = {}) {
    return "<controller type='pci' index='" + std::to_string(index) + "' model='pcie-root-port'>" +
           inside + "<address type='pci' domain='0x0000' bus='0x00' slot='0x02' function='0x" +
           std::to_string(index) + "'/></controller>";
}

constexpr char const* pcie_root = "<controller type='pci' index='0' model='pcie-root'/>";

constexpr char const* our_hostdev =
    "<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/><source>"
    "<address domain='0x0000' bus='0x01' slot='0x10' function='0x4'/></source>"
    "<alias name='ua-vfmgr-3f9c2b1d'/>"
    "<address type='pci' domain='0x0000' bus='0x02' slot='0x00' function='0x0'/></hostdev>";

DomainXml parsed(std::string const& xml) {
    auto result = parse_domain_xml(xml);
    if (!result) ADD_FAILURE() << result.error().detail;
    return result.value_or(DomainXml{});
}

TEST(DomainXml, Identity) {
    auto const live = parsed(domain(""));
    EXPECT_EQ(live.name, "db1");
    EXPECT_EQ(live.uuid, "0b0b0b0b-1111-2222-3333-444444444444");
    EXPECT_EQ(live.start_id, 4);
    EXPECT_FALSE(live.has_vsock);
    EXPECT_THAT(live.hostdevs, IsEmpty());

    auto const inactive = parsed("<domain type='kvm'><name>a</name><uuid>b</uuid></domain>");
    EXPECT_EQ(inactive.start_id, std::nullopt);
    EXPECT_EQ(inactive.free_ports, 0u);
}

TEST(DomainXml, VsockCidOnlyWhenLibvirtHasChosenOne) {
    auto const chosen =
        parsed(domain("<vsock model='virtio'><cid auto='yes' address='7'/></vsock>"));
    EXPECT_TRUE(chosen.has_vsock);
    EXPECT_EQ(chosen.vsock_cid, 7u);
    auto const open = parsed(domain("<vsock model='virtio'><cid auto='yes'/></vsock>"));
    EXPECT_TRUE(open.has_vsock);
    EXPECT_EQ(open.vsock_cid, std::nullopt);
}

TEST(DomainXml, EveryWayToTakeAHostPciDevice) {
    auto const vm = parsed(domain(
        std::string(our_hostdev) +
        "<interface type='hostdev' managed='yes'><mac address='02:00:00:00:00:01'/><source>"
        "<address type='pci' domain='0x0001' bus='0x3b' slot='0x00' function='0x2'/></source>"
        "<alias name='hostdev1'/></interface>"
        "<disk type='nvme' device='disk'><source type='pci' managed='yes' namespace='1'>"
        "<address domain='0x0000' bus='0x05' slot='0x00' function='0x0'/></source>"
        "<target dev='vda' bus='virtio'/></disk>"
        "<hostdev mode='subsystem' type='usb'><source><address bus='1' device='2'/></source>"
        "</hostdev>"));
    ASSERT_EQ(vm.hostdevs.size(), 3u);
    EXPECT_EQ(vm.hostdevs[0],
              (DomainHostdev{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d", pci("0000:02:00.0")}));
    EXPECT_EQ(vm.hostdevs[1], (DomainHostdev{pci("0001:3b:00.2"), "hostdev1", std::nullopt, true}));
    EXPECT_EQ(vm.hostdevs[2], (DomainHostdev{pci("0000:05:00.0"), std::nullopt, std::nullopt}));
    EXPECT_EQ(find_alias(vm, "ua-vfmgr-3f9c2b1d"), &vm.hostdevs[0]);
    EXPECT_EQ(find_alias(vm, "ua-vfmgr-3f9c2b1"), nullptr);
    EXPECT_EQ(find_host_pci(vm, pci("0001:3b:00.2")), &vm.hostdevs[1]);
    EXPECT_EQ(find_host_pci(vm, pci("0000:3b:00.2")), nullptr);
}

TEST(DomainXml, DecimalAndMissingAddressParts) {
    auto const vm = parsed(
        domain("<hostdev type='pci'><source><address bus='59' slot='16'/></source></hostdev>"));
    ASSERT_EQ(vm.hostdevs.size(), 1u);
    EXPECT_EQ(vm.hostdevs[0].pci, pci("0000:3b:10.0"));
}

TEST(DomainXml, AHostdevThatCannotBeReadMakesTheDomainUnknown) {
    for (auto const* source :
         {"", "<address/>", "<address bus='0x01' slot='0x20'/>",
          "<address bus='0x100' slot='0x00'/>", "<address bus='x' slot='0'/>",
          "<address bus='0x' slot='0'/>", "<address bus='1' slot='0' function='8'/>"}) {
        auto const result = parse_domain_xml(
            domain(std::string("<hostdev type='pci'><source>") + source + "</source></hostdev>"));
        ASSERT_FALSE(result) << source;
        EXPECT_EQ(result.error().problem, Problem::hypervisor_refused);
        EXPECT_EQ(result.error().detail,
                  "a <hostdev> of VM db1 has no host PCI address that can be parsed");
    }
}

TEST(DomainXml, NetworksOnceEach) {
    auto const vm =
        parsed(domain("<interface type='network'><source network='pool'/></interface>"
                      "<interface type='network'><source network='default'/></interface>"
                      "<interface type='network'><source network='pool'/></interface>"
                      "<interface type='bridge'><source bridge='br0'/></interface>"));
    EXPECT_THAT(vm.networks, ElementsAre("default", "pool"));
}

TEST(FreePorts, RootPortsWithoutADevice) {
    auto const vm = parsed(
        domain(std::string(pcie_root) + root_port(1) + root_port(2) + root_port(3) + our_hostdev));
    EXPECT_EQ(vm.free_ports, 2u);
    EXPECT_THAT(vm.free_addresses, ElementsAre(pci("0000:01:00.0"), pci("0000:03:00.0")));
}

TEST(FreePorts, DownstreamPortsCountUpstreamPortsDoNot) {
    auto const vm =
        parsed(domain(std::string(pcie_root) + root_port(1) +
                      "<controller type='pci' index='2' model='pcie-switch-upstream-port'>"
                      "<address type='pci' bus='0x01' slot='0x00'/></controller>"
                      "<controller type='pci' index='3' model='pcie-switch-downstream-port'>"
                      "<address type='pci' bus='0x02' slot='0x00'/></controller>"
                      "<controller type='pci' index='4' model='pcie-to-pci-bridge'>"
                      "<address type='pci' bus='0x03' slot='0x00'/></controller>"));
    EXPECT_EQ(vm.free_ports, 0u);  // 1 holds the switch, 3 the bridge; 2 and 4 have no hot-plug
    auto const without_bridge =
        parsed(domain(std::string(pcie_root) +
                      "<controller type='pci' index='3' model='pcie-switch-downstream-port'/>"));
    EXPECT_EQ(without_bridge.free_ports, 1u);
}

TEST(FreePorts, APortWithHotPlugOffDoesNotCount) {
    auto const vm = parsed(domain(std::string(pcie_root) + root_port(1, "<target hotplug='off'/>") +
                                  root_port(2, "<target chassis='2' port='0x9' hotplug='on'/>")));
    EXPECT_EQ(vm.free_ports, 1u);
}

TEST(FreePorts, DevicesWithoutAPlaceAreTakenToNeedAPort) {
    auto const ports = std::string(pcie_root) +
                       "<controller type='pci' model='pcie-root-port'/>"
                       "<controller type='pci' model='pcie-root-port'/>";
    EXPECT_EQ(parsed(domain(ports)).free_ports, 2u);
    auto const one = parsed(domain(ports + "<interface type='bridge'/>"));
    EXPECT_EQ(one.unplaced_devices, 1u);
    EXPECT_EQ(one.free_ports, 1u);
    // More devices than ports: none is free, and the count does not wrap.
    EXPECT_EQ(parsed(domain(ports + "<video/><vsock/><rng model='virtio'/>")).free_ports, 0u);
    // Not on PCI.
    auto const none = parsed(
        domain(ports + "<console/><memballoon model='none'/><watchdog model='itco'/>"
                       "<disk type='file'><target bus='sata'/></disk>"
                       "<input type='mouse' bus='ps2'/><controller type='usb' model='none'/>"));
    EXPECT_EQ(none.unplaced_devices, 0u);
    EXPECT_EQ(none.free_ports, 2u);
}

TEST(FreePorts, SlotsOfAPcMachine) {
    auto const root = std::string("<controller type='pci' index='0' model='pci-root'/>");
    EXPECT_EQ(parsed(domain(root, "pc-i440fx-7.2")).free_ports, 29u);  // 32 - 0, 1, 2
    auto const two_functions =
        parsed(domain(root + "<interface type='bridge'><address type='pci' bus='0x00' slot='0x03' "
                             "function='0x0'/></interface><rng model='virtio'><address type='pci' "
                             "bus='0x00' slot='0x03' function='0x1'/></rng>",
                      "pc-i440fx-7.2"));
    EXPECT_EQ(two_functions.free_ports, 28u);
    EXPECT_EQ(two_functions.free_addresses.front(), pci("0000:00:04.0"));
    EXPECT_EQ(parsed(domain(root, "pseries-7.2")).free_ports, 31u);
}

TEST(CanPlace, TheBusIsThereAndTheSlotIsFree) {
    auto const vm =
        parsed(domain(std::string(pcie_root) + root_port(1) + root_port(2) + our_hostdev));
    EXPECT_TRUE(can_place(vm, pci("0000:01:00.0")));
    EXPECT_FALSE(can_place(vm, pci("0000:02:00.0")));
    EXPECT_FALSE(can_place(vm, pci("0000:09:00.0")));
}

TEST(DomainXml, RefusesWhatIsNoDomain) {
    for (auto const* xml :
         {"", "<domain", "<network/>", "not xml", "<domain/>", "<domain><name>x</name></domain>"}) {
        auto const result = parse_domain_xml(xml);
        ASSERT_FALSE(result) << xml;
        EXPECT_EQ(result.error().problem, Problem::hypervisor_refused);
        EXPECT_THAT(result.error().detail, HasSubstr("libvirt's XML of "));
        EXPECT_FALSE(result.error().remedy.empty());
    }
    auto const huge = parse_domain_xml(std::string(4 * 1024 * 1024 + 1, ' '));
    ASSERT_FALSE(huge);
    EXPECT_THAT(huge.error().detail, HasSubstr("4194305 bytes"));
}

TEST(HostdevPool, OnlyForwardModeHostdev) {
    auto const pool = hostdev_pool_name(
        "<network><name>vfs</name><forward mode='hostdev' managed='yes'><pf dev='ens1'/></forward>"
        "</network>");
    ASSERT_TRUE(pool);
    EXPECT_EQ(*pool, "vfs");
    auto const nat = hostdev_pool_name("<network><name>n</name><forward mode='nat'/></network>");
    ASSERT_TRUE(nat);
    EXPECT_EQ(*nat, std::nullopt);
    EXPECT_FALSE(hostdev_pool_name("<domain/>"));
}

TEST(PathInGuest, IsSlotsFromTheRootDown) {
    auto const switched =
        parsed(domain(std::string(pcie_root) + root_port(1) + root_port(2) +
                      "<controller type='pci' index='3' model='pcie-switch-upstream-port'>"
                      "<address type='pci' bus='0x01' slot='0x00'/></controller>"
                      "<controller type='pci' index='4' model='pcie-switch-downstream-port'>"
                      "<address type='pci' bus='0x03' slot='0x0a'/></controller>"));
    EXPECT_EQ(path_in_guest(switched, pci("0000:02:00.0")), "00/02.2/00.0");
    EXPECT_EQ(path_in_guest(switched, pci("0000:04:00.1")), "00/02.1/00.0/0a.0/00.1");
    EXPECT_EQ(path_in_guest(switched, pci("0000:00:1f.2")), "00/1f.2");
    EXPECT_EQ(path_in_guest(switched, pci("0000:07:00.0")), std::nullopt) << "no such bus";
}

// An expander bus, as VMs with NUMA nodes have it: the VM sees the number of `busNr`.
TEST(PathInGuest, BeginsWithTheNumberOfAnExpandersBus) {
    auto const expanded = parsed(
        domain(std::string(pcie_root) +
               "<controller type='pci' index='1' model='pcie-expander-bus'><target busNr='180'>"
               "<node>1</node></target><address type='pci' bus='0x00' slot='0x05'/></controller>"
               "<controller type='pci' index='2' model='pcie-root-port'>"
               "<address type='pci' bus='0x01' slot='0x00'/></controller>"));
    EXPECT_EQ(path_in_guest(expanded, pci("0000:02:00.0")), "b4/00.0/00.0");
}

TEST(PathInGuest, IsUnknownOfPortsWithoutAPlace) {
    auto const unplaced =
        parsed(domain(std::string(pcie_root) +
                      "<controller type='pci' index='1' model='pcie-root-port'/>"
                      "<controller type='pci' index='2' model='pcie-root-port'>"
                      "<address type='pci' bus='0x03' slot='0x00'/></controller>"
                      "<controller type='pci' index='3' model='pcie-root-port'>"
                      "<address type='pci' bus='0x02' slot='0x00'/></controller>"));
    EXPECT_EQ(path_in_guest(unplaced, pci("0000:01:00.0")), std::nullopt);
    EXPECT_EQ(path_in_guest(unplaced, pci("0000:02:00.0")), std::nullopt) << "each below the other";
}

constexpr char const* teamed_bridge =
    "<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br0'/>"
    "<target dev='vnet3'/><teaming type='persistent'/><alias name='ua-net0'/></interface>";

TEST(DomainXml, InterfacesAndTheirMacs) {
    auto const vm = parsed(
        domain(std::string(teamed_bridge) +
               "<interface type='hostdev'><mac address='52:54:00:00:00:01'/><source>"
               "<address type='pci' domain='0x0000' bus='0x3b' slot='0x00' function='0x2'/>"
               "</source><teaming type='transient' persistent='ua-net0'/></interface>"
               "<interface type='network'><mac address='52:54:00:AB:CD:EF'/></interface>"
               "<interface type='user'/><interface type='user'><mac address='x'/></interface>" +
               our_hostdev));
    EXPECT_THAT(
        vm.interfaces,
        ElementsAre(VmInterface{MacAddress{{0x52, 0x54, 0, 0, 0, 1}}, "bridge", {}, true},
                    VmInterface{MacAddress{{0x52, 0x54, 0, 0, 0, 1}}, "hostdev",
                                pci("0000:3b:00.2"), false},
                    VmInterface{MacAddress{{0x52, 0x54, 0, 0xab, 0xcd, 0xef}}, "network", {}}));
}

TEST(VmInfo, HasTheInterfacesOfBothXmls) {
    auto const live = parsed(domain(teamed_bridge));
    auto const both = std::string(teamed_bridge) +
                      "<interface type='network'><mac address='52:54:00:00:00:02'/></interface>";
    auto const config = parsed(domain(both));
    VmInterface const shared{MacAddress{{0x52, 0x54, 0, 0, 0, 1}}, "bridge", {}, true};
    VmInterface const next{MacAddress{{0x52, 0x54, 0, 0, 0, 2}}, "network", {}};
    EXPECT_THAT(vm_info(&live, &config, {}).interfaces, ElementsAre(shared, next));
    EXPECT_THAT(vm_info(&live, nullptr, {}).interfaces, ElementsAre(shared));
    EXPECT_THAT(vm_info(nullptr, &config, {}).interfaces, ElementsAre(shared, next));
}

TEST(VmInfo, TellsWhereTheVmSeesItsHostdevs) {
    auto const live =
        parsed(domain(std::string(pcie_root) + root_port(1) + root_port(2) + our_hostdev));
    EXPECT_EQ(vm_info(&live, nullptr, {}).live.at(0).in_guest, "00/02.2/00.0");
}

TEST(VmInfo, LiveAndConfigSideBySide) {
    auto live =
        parsed(domain("<vsock model='virtio'><cid address='5'/><address type='pci' "
                      "bus='0x00' slot='0x01'/></vsock>" +
                      std::string(pcie_root) + root_port(1) + our_hostdev));
    auto config = parsed(domain("<interface type='network'><source network='pool'/></interface>"));
    config.start_id.reset();

    auto const running = vm_info(&live, &config, {"other", "pool"});
    EXPECT_EQ(running.name, "db1");
    EXPECT_EQ(running.start_id, 4);
    EXPECT_EQ(running.vsock_cid, 5u);
    EXPECT_FALSE(running.has_vsock);  // the next start has none
    EXPECT_TRUE(running.persistent);
    EXPECT_EQ(running.free_pcie_ports, 1u);
    EXPECT_THAT(running.free_live, ElementsAre(pci("0000:01:00.0")));
    EXPECT_THAT(running.free_config, IsEmpty());
    EXPECT_THAT(running.live, ElementsAre(VmHostdev{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d"}));
    EXPECT_THAT(running.config, IsEmpty());
    EXPECT_THAT(running.hostdev_networks, ElementsAre("pool"));

    auto const transient = vm_info(&live, nullptr, {});
    EXPECT_FALSE(transient.persistent);
    EXPECT_TRUE(transient.has_vsock);

    auto const stopped = vm_info(nullptr, &config, {"other"});
    EXPECT_EQ(stopped.start_id, std::nullopt);
    EXPECT_EQ(stopped.vsock_cid, std::nullopt);
    EXPECT_THAT(stopped.live, IsEmpty());
    EXPECT_THAT(stopped.hostdev_networks, IsEmpty());
}

}  // namespace
}  // namespace vfmgr
