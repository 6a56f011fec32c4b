// SPDX-License-Identifier: Apache-2.0
// The rules of writing VF settings; the lab tests the writing itself on a real driver.
#include "vfmgr/kernel/vf_settings.hpp"

#include <fmt/format.h>

#include "veth_pf.hpp"
#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/kernel/vf_files.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::pci;
using test::soon;

MacAddress mac(std::string const& text) {
    return MacAddress::parse(text).value();
}

VfSpec everything() {
    VfSpec spec;
    spec.mac = mac("52:54:00:11:22:33");
    spec.vlan = Vlan{100, 3, VlanProtocol::dot1ad};
    spec.spoofchk = false;
    spec.trust = true;
    spec.link_state = LinkState::enable;
    spec.min_tx_rate_mbps = 10;
    spec.max_tx_rate_mbps = 200;
    spec.node_guid = Guid{1};
    spec.port_guid = Guid{2};
    spec.query_rss = true;
    spec.msix_vectors = 12;
    spec.roce = false;
    return spec;
}

TEST(Holds, ComparesEachAttributeAlone) {
    auto const expected = everything();
    for (auto const& [attribute, name] : enum_names<VfAttribute>) {
        EXPECT_TRUE(holds(expected, expected, attribute)) << name;
        EXPECT_FALSE(holds(expected, VfSpec{}, attribute)) << name << ": not reported is not held";
    }
    auto other = expected;
    other.vlan->qos = 4;
    EXPECT_FALSE(holds(expected, other, VfAttribute::vlan));
    EXPECT_TRUE(holds(expected, other, VfAttribute::mac));
}

TEST(Holds, TheStandInMacIsAsGoodAsZero) {
    VfSpec zero;
    zero.mac = MacAddress{};
    VfSpec stand_in;
    stand_in.mac = quirks::stand_in_mac;
    EXPECT_TRUE(holds(zero, stand_in, VfAttribute::mac));
    EXPECT_TRUE(holds(zero, zero, VfAttribute::mac));
    EXPECT_FALSE(holds(stand_in, zero, VfAttribute::mac));
}

TEST(Holds, AnyNumberOfVectorsIsTheDriversDefault) {
    VfSpec expected;
    expected.msix_vectors = 0;
    EXPECT_TRUE(holds(expected, everything(), VfAttribute::msix_vectors));
    EXPECT_FALSE(holds(expected, VfSpec{}, VfAttribute::msix_vectors));
}

TEST(ToWrite, LeavesOutWhatDriversRefuseEvenWhenItHolds) {
    VfSpec expected;
    expected.link_state = LinkState::auto_;
    expected.min_tx_rate_mbps = 0;
    expected.max_tx_rate_mbps = 0;
    expected.mac = MacAddress{};
    EXPECT_TRUE(empty(to_write(expected, expected)));
}

TEST(ToWrite, WritesAMacAgainSoThatItIsThePfs) {
    VfSpec expected;
    expected.mac = mac("52:54:00:11:22:33");
    expected.trust = true;
    EXPECT_EQ(to_write(expected, expected), expected);
}

TEST(ToWrite, AMinimumRateTakesTheMaximumThatIs) {
    VfSpec expected;
    expected.min_tx_rate_mbps = 10;
    VfSpec reported;
    reported.min_tx_rate_mbps = 0;
    reported.max_tx_rate_mbps = 500;
    EXPECT_EQ(to_write(expected, reported).max_tx_rate_mbps, 500U);
    expected.max_tx_rate_mbps = 900;
    EXPECT_EQ(to_write(expected, reported).max_tx_rate_mbps, 900U);
    expected.max_tx_rate_mbps = 500;  // holds already, but the message needs it
    EXPECT_EQ(to_write(expected, reported).max_tx_rate_mbps, 500U);
}

TEST(ToWrite, AMaximumRateLeavesTheMinimumToTheKernel) {
    VfSpec expected;
    expected.max_tx_rate_mbps = 900;
    VfSpec reported;
    reported.min_tx_rate_mbps = 10;
    EXPECT_EQ(to_write(expected, reported), expected);
}

TEST(DependsOnReport, IsSaidOfWhateverToWriteLooksAt) {
    auto const reported = everything();
    for (auto const attribute : attributes_of(everything())) {
        auto const expected = only(everything(), attribute);
        EXPECT_TRUE(depends_on_report(expected) || to_write(expected, reported) == expected);
        EXPECT_EQ(depends_on_report(expected), attribute == VfAttribute::link_state ||
                                                   attribute == VfAttribute::max_tx_rate ||
                                                   attribute == VfAttribute::min_tx_rate);
    }
    VfSpec zero;
    zero.mac = MacAddress{};
    EXPECT_TRUE(depends_on_report(zero));
}

TEST(SettingText, NamesAttributeAndValue) {
    auto const spec = everything();
    std::vector<std::string> texts;
    for (auto const attribute : attributes_of(spec)) texts.push_back(setting_text(spec, attribute));
    EXPECT_EQ(texts,
              (std::vector<std::string>{
                  "mac 52:54:00:11:22:33", "vlan 100 qos 3 proto 802.1ad", "max_tx_rate_mbps 200",
                  "min_tx_rate_mbps 10", "spoofchk off", "link_state enable", "query_rss on",
                  "trust on", "node_guid 00:00:00:00:00:00:00:01",
                  "port_guid 00:00:00:00:00:00:00:02", "msix_vectors 12", "roce off"}));
    EXPECT_EQ(setting_text(VfSpec{}, VfAttribute::vlan), "no vlan");
}

// A device without VFs refuses with the kernel's own errors: veth stands for the PF.
using ConfigureVfsStep = test::Networked;

struct VethSettings : test::VethPf {
    VethSettings() { write(device(pf) / "net/near0/dev_port", "0\n"); }
    [[nodiscard]] Result<Observed> configure(ConfigureVfs step) const {
        step.pf = pci(pf);
        VFMGR_TRY(auto open, OpenPf::open(roots(), step.pf, soon()));
        return perform_step(roots(), open, step, soon());
    }
};

TEST_F(ConfigureVfsStep, ARefusalNamesAttributeValueVfAndErrno) {
    VethSettings const tree;
    VfSpec settings;
    settings.trust = true;
    settings.mac = mac("52:54:00:11:22:33");
    auto const refused = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::kernel_refused);
    EXPECT_EQ(refused.error().detail,
              "igb refused mac 52:54:00:11:22:33 for VF 2 of near0: Operation not supported (and 1 "
              "more refusals)");
    EXPECT_NE(refused.error().remedy.find("best_effort"), std::string::npos);
    ASSERT_EQ(refused.error().causes.size(), 2U);
    EXPECT_EQ(refused.error().causes[0].call, "RTM_SETLINK near0 vf 2 mac 52:54:00:11:22:33");
    EXPECT_EQ(refused.error().causes[0].code, "EOPNOTSUPP");
    EXPECT_EQ(refused.error().causes[1].call, "RTM_SETLINK near0 vf 2 trust on");
}

TEST_F(ConfigureVfsStep, EachVfOfARefusedMessageIsNamed) {
    VethSettings tree;
    ConfigureVfs step{{}, {}, {"trust"}};
    VfSpec settings;
    settings.trust = true;
    std::vector<std::string> told;
    for (std::uint16_t vf = 0; vf < 5; ++vf) {
        tree.add_vf("0000:01:00.0", vf, fmt::format("0000:01:10.{}", vf));
        step.changes.push_back({vf, settings});
        told.push_back(
            fmt::format("igb refused trust on for VF {} of near0: Operation not supported", vf));
    }
    auto const done = tree.configure(step);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->remarks, told);
}

TEST_F(ConfigureVfsStep, BestEffortIsToldAndNotFatal) {
    VethSettings const tree;
    VfSpec settings;
    settings.trust = true;
    settings.mac = mac("52:54:00:11:22:33");
    auto const done = tree.configure({{}, {{2, settings}}, {"trust", "mac"}});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->remarks,
              (std::vector<std::string>{
                  "igb refused mac 52:54:00:11:22:33 for VF 2 of near0: Operation not supported",
                  "igb refused trust on for VF 2 of near0: Operation not supported"}));
    auto const half = tree.configure({{}, {{2, settings}}, {"trust"}});
    ASSERT_FALSE(half);
    EXPECT_EQ(half.error().causes.size(), 1U);
}

TEST_F(ConfigureVfsStep, UnknownVfAndPfWithoutInterface) {
    VethSettings const tree;
    VfSpec settings;
    settings.trust = true;
    EXPECT_EQ(tree.configure({{}, {{9, settings}}, {}}).error().problem, Problem::not_found);
    fs::remove_all(tree.device("0000:01:00.0") / "net");
    auto const refused = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
}

TEST_F(ConfigureVfsStep, RoceIsDevlinksAndRefusedWithoutAPort) {
    VethSettings const tree;
    VfSpec settings;
    settings.roce = false;
    auto const refused = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail,
              "igb refused roce off for VF 2 of near0: devlink has no port of this VF");
    EXPECT_EQ(refused.error().causes.at(0).code, "EOPNOTSUPP");
    EXPECT_EQ(refused.error().causes.at(0).call, "DEVLINK_CMD_PORT_SET roce off");
    EXPECT_NE(refused.error().remedy.find("switchdev"), std::string::npos);
    auto const tolerated = tree.configure({{}, {{2, settings}}, {"roce"}});
    ASSERT_TRUE(tolerated) << tolerated.error().detail;
    EXPECT_EQ(tolerated->remarks.at(0), refused.error().detail);
}

TEST_F(ConfigureVfsStep, WhatIsSoAlreadyMayBeRefused) {
    VethSettings const tree;
    tree.write(tree.device("0000:01:10.4") / "config", test::configuration_with_msix(12));
    VfSpec settings;
    settings.msix_vectors = 12;
    auto const done = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_TRUE(done->remarks.empty());
    settings.trust = true;
    auto const refused = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail,
              "igb refused trust on for VF 2 of near0: Operation not supported");
}

TEST_F(ConfigureVfsStep, MsixVectorsAreWrittenAndReadBack) {
    VethSettings const tree;
    auto const file = tree.device("0000:01:10.4") / "sriov_vf_msix_count";
    VfSpec settings;
    settings.msix_vectors = 12;
    auto const absent = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().detail,
              "igb refused msix_vectors 12 for VF 2 of near0: Operation not supported");
    EXPECT_EQ(absent.error().causes[0].code, "EOPNOTSUPP");

    tree.write(file, "");
    tree.write(tree.device("0000:01:10.4") / "config", test::configuration_with_msix(12));
    EXPECT_TRUE(tree.configure({{}, {{2, settings}}, {}}));
    EXPECT_EQ(tree.read(file), "12");

    tree.write(tree.device("0000:01:10.4") / "config", test::configuration_with_msix(5));
    auto const other = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().detail,
              "igb accepted msix_vectors 12 for VF 2 of near0 but reports msix_vectors 5");
}

// An InfiniBand PF without ib_ipoib, with NVIDIA's own driver.
TEST_F(ConfigureVfsStep, GuidsAndPolicyGoToOfedsFilesWithoutAnInterface) {
    VethSettings const tree;
    fs::remove_all(tree.device("0000:01:00.0") / "net");
    auto const folder = tree.device("0000:01:00.0") / "sriov/2";
    for (auto const* const name : {"node", "port", "policy"}) tree.write(folder / name, "");
    VfSpec settings;
    settings.node_guid = Guid{0x248a0703008dae2e};
    settings.port_guid = Guid{0x248a0703008dae2f};
    settings.link_state = LinkState::auto_;
    auto const done = tree.configure({{}, {{2, settings}}, {}});
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_TRUE(done->remarks.empty());
    EXPECT_EQ(tree.read(folder / "node"), "24:8a:07:03:00:8d:ae:2e");
    EXPECT_EQ(tree.read(folder / "port"), "24:8a:07:03:00:8d:ae:2f");
    EXPECT_EQ(tree.read(folder / "policy"), "Follow");
    EXPECT_EQ(read_vf_files(tree.roots(), {pci("0000:01:00.0"), 2}, pci("0000:01:10.4")), settings);

    settings.mac = mac("52:54:00:11:22:33");  // has no file
    EXPECT_EQ(tree.configure({{}, {{2, settings}}, {}}).error().problem, Problem::unsupported);
}

}  // namespace
}  // namespace vfmgr
