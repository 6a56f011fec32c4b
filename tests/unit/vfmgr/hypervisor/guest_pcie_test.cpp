// SPDX-License-Identifier: Apache-2.0
// What placing reads of a domain's XML, and what it leaves of it.
#include "vfmgr/hypervisor/guest_pcie.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfmgr/hypervisor/domain_xml.hpp"

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr PciAddress gpu{0, 0x41, 0, 0}, vf{0, 0x42, 0x10, 4};

std::string hostdev_at(std::string const& source, std::string const& address) {
    return "<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' " +
           source + "/></source>" + address + "</hostdev>";
}

std::string at(std::string const& place) {
    return "<address type='pci' domain='0x0000' " + place + "/>";
}

std::string const gpu_source = "bus='0x41' slot='0x00' function='0x0'";
std::string const vf_source = "bus='0x42' slot='0x10' function='0x4'";

std::string q35_vm(std::string const& more = {},
                   std::string const& hostdevs =
                       hostdev_at(gpu_source, at("bus='0x01' slot='0x00' function='0x0'")) +
                       hostdev_at(vf_source, at("bus='0x02' slot='0x00' function='0x0'"))) {
    return "<domain type='kvm'><name>db1</name><uuid>u</uuid>" + more +
           "<os><type machine='pc-q35-7.2'>hvm</type></os><devices>"
           "<controller type='pci' index='0' model='pcie-root'/>"
           "<controller type='pci' index='1' model='pcie-root-port'>" +
           at("bus='0x00' slot='0x02' function='0x0' multifunction='on'") +
           "</controller><controller type='pci' index='2' model='pcie-root-port'>" +
           at("bus='0x00' slot='0x02' function='0x1'") + "</controller>" + hostdevs + "<video>" +
           at("bus='0x00' slot='0x03' function='0x0'") + "</video></devices></domain>";
}

GuestPcie pcie_of(std::string const& xml) {
    auto const domain = parse_domain_xml(xml);
    if (!domain) ADD_FAILURE() << domain.error().detail;
    return domain.value().pcie.value_or(GuestPcie{});
}

PlaceHostdevs both_placed() {
    return {"u", {{gpu, {}, {0}}, {vf, {}, {0}}}, "db1"};
}

std::string placed(std::string const& xml, PlaceHostdevs const& step = both_placed()) {
    auto changed = placed_xml(xml, step);
    if (!changed) ADD_FAILURE() << changed.error().detail;
    return changed.value_or("");
}

std::vector<std::string> paths(std::string const& xml) {
    auto const domain = parse_domain_xml(xml).value();
    std::vector<std::string> all;
    for (auto const& each : domain.hostdevs)
        all.push_back(each.guest ? path_in_guest(domain, *each.guest).value_or("?") : "-");
    return all;
}

TEST(GuestPcie, KnowsWhatIsFree) {
    auto const pcie = pcie_of(q35_vm());
    EXPECT_EQ(pcie.next_bus, 3U);
    EXPECT_EQ(pcie.free_slots.front(), 4U);  // 2 and 3 are taken
    EXPECT_THAT(pcie.placed, IsEmpty());
}

TEST(GuestPcie, AnotherMachineHasNone) {
    EXPECT_FALSE(parse_domain_xml("<domain><name>a</name><uuid>b</uuid><devices><controller "
                                  "type='pci' index='0' model='pci-root'/></devices></domain>")
                     .value()
                     .pcie);
}

TEST(GuestPcie, ACellIsWhereItsMemoryIsBound) {
    std::string const cells =
        "<cpu><numa><cell id='0'/><cell id='1'/><cell id='2'/><cell id='3'/></numa></cpu>";
    std::string const bound =
        "<numatune><memnode cellid='0' mode='strict' nodeset='1'/>"
        "<memnode cellid='1' mode='strict' nodeset='0-1'/>"
        "<memnode cellid='2' mode='preferred' nodeset='0'/></numatune>";
    EXPECT_THAT(pcie_of(q35_vm(cells + bound)).cell_nodes, ElementsAre(1, -1, -1, -1));
    EXPECT_THAT(pcie_of(q35_vm("<cpu><numa><cell id='0'/></numa></cpu>"
                               "<numatune><memory mode='strict' nodeset='1'/></numatune>"))
                    .cell_nodes,
                ElementsAre(1));
    EXPECT_THAT(pcie_of(q35_vm()).cell_nodes, IsEmpty());
    auto const expander = "<controller type='pci' index='9' model='pcie-expander-bus'/>";
    EXPECT_THAT(pcie_of(q35_vm(cells + bound, expander)).cell_nodes, IsEmpty());
}

TEST(GuestPcie, PlacesBelowOneSwitch) {
    auto const xml = placed(q35_vm());
    EXPECT_THAT(paths(xml), ElementsAre("00/04.0/00.0/00.0/00.0", "00/04.0/00.0/01.0/00.0"));
    EXPECT_EQ(pcie_of(xml).placed, both_placed().hostdevs);
    EXPECT_EQ(pcie_of(xml).next_bus, 3U);  // what was added counts as free
    EXPECT_EQ(pcie_of(xml).free_slots, pcie_of(q35_vm()).free_slots);
}

TEST(GuestPcie, UndoesItself) {
    auto const back = placed(placed(q35_vm()), {"u", {}, "db1"});
    EXPECT_THAT(paths(back), ElementsAre("00/02.0/00.0", "00/02.1/00.0"));
    EXPECT_THAT(back, Not(HasSubstr("vfmgr")));
    EXPECT_EQ(back, placed(q35_vm(), {"u", {}, "db1"}));
}

TEST(GuestPcie, PlacingAgainKeepsTheFirstPlaces) {
    PlaceHostdevs const apart{"u", {{gpu, {}, {0}}, {vf, {}, {1}}}, "db1"};
    auto const again = placed(placed(q35_vm()), apart);
    EXPECT_THAT(paths(again), ElementsAre("00/04.0/00.0/00.0/00.0", "00/05.0/00.0/00.0/00.0"));
    EXPECT_THAT(paths(placed(again, {"u", {}, "db1"})),
                ElementsAre("00/02.0/00.0", "00/02.1/00.0"));
}

TEST(GuestPcie, APlaceThatIsTakenIsLibvirtsToChoose) {
    auto xml = placed(q35_vm());
    auto const taken = hostdev_at("bus='0x43' slot='0x00' function='0x0'",
                                  at("bus='0x01' slot='0x00' function='0x0'"));
    xml.insert(xml.find("</devices>"), taken);
    EXPECT_THAT(paths(placed(xml, {"u", {}, "db1"})),
                ElementsAre("-", "00/02.1/00.0", "00/02.0/00.0"));
}

TEST(GuestPcie, AGuestBelowOurPortsIsSetFree) {
    auto xml = placed(q35_vm());
    auto const below = hostdev_at("bus='0x43' slot='0x00' function='0x0'",
                                  at("bus='0x06' slot='0x00' function='0x0'"));
    xml.insert(xml.find("</devices>"), below);
    EXPECT_EQ(paths(placed(xml, {"u", {}, "db1"})).at(2), "-");
}

TEST(GuestPcie, ADeviceThatIsGoneIsNotPlaced) {
    auto const xml = placed(q35_vm());
    auto const begin = xml.rfind("<hostdev", xml.find("bus=\"0x42\""));
    auto const end = xml.find("</hostdev>", begin);
    auto gone = xml;
    gone.erase(begin, end + 10 - begin);
    EXPECT_THAT(pcie_of(gone).placed, ElementsAre(PlacedHostdev{gpu, {}, {0}}));
    EXPECT_EQ(placed_xml(gone, both_placed()).error().problem, Problem::conflict);
}

TEST(GuestPcie, ACellGetsAnExpanderBus) {
    std::string const cells =
        "<cpu><numa><cell id='0'/></numa></cpu>"
        "<numatune><memory mode='strict' nodeset='1'/></numatune>";
    PlaceHostdevs const step{"u", {{gpu, 0, {0}}, {vf, 0, {0}}}, "db1"};
    auto const xml = placed(q35_vm(cells), step);
    EXPECT_THAT(paths(xml), ElementsAre("f7/00.0/00.0/00.0/00.0", "f7/00.0/00.0/01.0/00.0"));
    EXPECT_THAT(xml, HasSubstr("<target busNr=\"247\">"));
    EXPECT_THAT(pcie_of(xml).cell_nodes, ElementsAre(1));
    EXPECT_EQ(pcie_of(xml).placed, step.hostdevs);
}

TEST(GuestPcie, KeepsTheRestOfTheXml) {
    std::string const metadata = "<metadata><a:b xmlns:a='urn:a'>text &amp; more</a:b></metadata>";
    auto const xml = placed(q35_vm(metadata));
    EXPECT_THAT(xml, HasSubstr("<a:b xmlns:a=\"urn:a\">text &amp; more</a:b>"));
    EXPECT_THAT(placed(xml, {"u", {}, "db1"}), HasSubstr("text &amp; more"));
    EXPECT_THAT(xml, HasSubstr("multifunction=\"on\""));
}

}  // namespace
}  // namespace vfmgr
