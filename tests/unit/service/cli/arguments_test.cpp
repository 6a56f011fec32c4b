// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "service/cli/attach_spec.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/network_edit.hpp"
#include "service/cli/pf_edit.hpp"
#include "service/cli/resolve.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

template <class T>
std::string refusal(Result<T> const& result) {
    if (result) return "accepted";
    EXPECT_EQ(exit_code(result.error().problem), 2);
    EXPECT_FALSE(result.error().remedy.empty());
    return result.error().detail;
}

TEST(Vlan, HasIdQosAndProtocol) {
    EXPECT_EQ(parse_vlan("100"), (Vlan{100, 0, VlanProtocol::dot1q}));
    EXPECT_EQ(parse_vlan("0"), (Vlan{0, 0, VlanProtocol::dot1q}));
    EXPECT_EQ(parse_vlan("4094:7"), (Vlan{4094, 7, VlanProtocol::dot1q}));
    EXPECT_EQ(parse_vlan("5:0:802.1ad"), (Vlan{5, 0, VlanProtocol::dot1ad}));
    EXPECT_EQ(refusal(parse_vlan("4095")), "the VLAN id is a number from 0 to 4094, not '4095'");
    EXPECT_EQ(refusal(parse_vlan("")), "the VLAN id is a number from 0 to 4094, not ''");
    EXPECT_EQ(refusal(parse_vlan("1:8")), "the VLAN's qos is a number from 0 to 7, not '8'");
    EXPECT_EQ(refusal(parse_vlan("1:")), "the VLAN's qos is a number from 0 to 7, not ''");
    EXPECT_EQ(refusal(parse_vlan("1:2:3:4")),
              "the VLAN's protocol is one of 802.1q, 802.1ad, not '3:4'");
    EXPECT_NE(refusal(parse_vlan("-1")), "accepted");
    EXPECT_NE(refusal(parse_vlan("1x")), "accepted");
}

TEST(AttachSpec, HoldsOnlyWhatWasGiven) {
    AttachArguments arguments;
    arguments.vm = "db1";
    auto const pf = *PciAddress::parse("0000:01:00.0");
    auto const least = attachment_spec(arguments, {pf});
    ASSERT_TRUE(least);
    AttachmentSpec bare;
    bare.vm = "db1";
    bare.pf = pf;
    EXPECT_EQ(*least, bare);

    arguments.network = "lab";
    arguments.near = "gpu";
    arguments.address = "10.1.0.5";
    arguments.mac = "02:00:00:00:00:05";
    arguments.vlan = "7:1";
    arguments.trust = "on";
    arguments.spoofchk = "off";
    arguments.query_rss = "on";
    arguments.node_guid = "24:8a:07:03:00:8d:ae:2e";
    arguments.port_guid = "248a:0703:008d:ae2f";
    arguments.msix_vectors = 12;
    arguments.link_state = "auto";
    arguments.max_tx_rate_mbps = 1000;
    arguments.persistence = "live";
    arguments.best_effort = {"trust", "vlan"};
    arguments.verify = true;
    arguments.verify_timeout_seconds = 60;
    arguments.verify_profile = "deep";
    arguments.verify_every_seconds = 3600;
    auto const most = attachment_spec(arguments, {pf, 2});
    ASSERT_TRUE(most) << most.error().detail;
    EXPECT_EQ(nlohmann::json(*most), nlohmann::json::parse(R"({
        "vm": "db1", "pf": "0000:01:00.0", "vf": 2, "network": "lab", "near": "gpu",
        "address": "10.1.0.5",
        "settings": {"mac": "02:00:00:00:00:05", "trust": true, "spoofchk": false,
            "query_rss": true, "node_guid": "24:8a:07:03:00:8d:ae:2e",
            "port_guid": "24:8a:07:03:00:8d:ae:2f", "msix_vectors": 12,
                     "vlan": {"id": 7, "qos": 1, "proto": "802.1q"}, "link_state": "auto",
                     "max_tx_rate_mbps": 1000},
        "best_effort": ["trust", "vlan"], "persistence": "live", "verify": "required",
        "verify_timeout_seconds": 60, "verify_profile": "deep", "verify_every_seconds": 3600})"));
}

TEST(AttachSpec, NamesAVmOrAHolder) {
    AttachArguments arguments;
    EXPECT_EQ(refusal(attachment_spec(arguments, {})), "no VM is named");
    arguments.external = "qm-104";
    auto const pf = *PciAddress::parse("0000:01:00.0");
    AttachmentSpec expected;
    expected.pf = pf;
    expected.holder = ExternalHolder{HolderKind::external, "qm-104", {}};
    EXPECT_EQ(attachment_spec(arguments, {pf}), expected);
    arguments.uid = 64055;
    expected.holder->uid = 64055;
    EXPECT_EQ(attachment_spec(arguments, {pf}), expected);
    arguments.vm = "db1";
    EXPECT_EQ(refusal(attachment_spec(arguments, {})),
              "VM db1 and the holder qm-104 can't both get it");
    arguments.external = "";
    EXPECT_EQ(refusal(attachment_spec(arguments, {})), "--uid is an external holder's");
}

TEST(AttachmentPatch, HoldsOnlyWhatWasGiven) {
    AttachArguments arguments;
    EXPECT_EQ(refusal(attachment_patch(arguments)), "there is nothing to set");
    arguments.trust = "on";
    arguments.vlan = "7";
    arguments.unset = {"mac"};
    AttachmentPatch expected;
    expected.settings.set.trust = true;
    expected.settings.vlan = VlanPatch{7, 0, VlanProtocol::dot1q};
    expected.settings.removed = {VfAttribute::mac};
    EXPECT_EQ(attachment_patch(arguments), expected);
    arguments.verify = arguments.allow_reset = true;
    arguments.verify_timeout_seconds = 30;
    arguments.verify_profile = "quick";
    arguments.best_effort = {"trust"};
    expected.verify = VerifyMode::required;
    expected.verify_timeout_seconds = 30;
    expected.verify_profile = Profile::quick;
    expected.best_effort = {"trust"};
    expected.allow_reset = true;
    EXPECT_EQ(attachment_patch(arguments), expected);
    arguments.unset = {"trust"};
    EXPECT_EQ(refusal(attachment_patch(arguments)), "trust is set and unset at once");
}

TEST(AttachSpec, WrongWordsAreNamed) {
    AttachArguments arguments;
    arguments.vm = "db1";
    arguments.trust = "yes";
    EXPECT_EQ(refusal(attachment_spec(arguments, {})), "--trust is on or off, not 'yes'");
    arguments.trust = "";
    arguments.link_state = "up";
    EXPECT_EQ(refusal(attachment_spec(arguments, {})),
              "--link-state is one of auto, enable, disable, not 'up'");
    arguments.link_state = "";
    arguments.mac = "nonsense";
    EXPECT_NE(refusal(attachment_spec(arguments, {})), "accepted");
    arguments.mac = "";
    arguments.address = "10.0.0.256";
    EXPECT_NE(refusal(attachment_spec(arguments, {})), "accepted");
}

TEST(PfEdit, ChangesOnlyWhatIsNamed) {
    PfSpec const four{PfMode::manage, 4};
    EXPECT_EQ(edit(four, {}), four);
    EXPECT_EQ(edit(four, {.num_vfs = 7, .mode = {}}), (PfSpec{PfMode::manage, 7}));
    EXPECT_EQ(edit(four, {.num_vfs = {}, .mode = PfMode::enforce}), (PfSpec{PfMode::enforce, 4}));
}

TEST(PfEdit, SettingsOfAFreeVfAreMergedAndTakenAway) {
    AttachArguments arguments;
    arguments.mac = "02:00:00:00:00:09";
    arguments.trust = "on";
    auto const named = named_settings(arguments, "see --help").value();
    auto const spec = edit({PfMode::manage, 4}, 2, named);
    ASSERT_EQ(spec.free_vfs.size(), 1U);
    EXPECT_EQ(spec.free_vfs[0].index, 2);
    EXPECT_EQ(spec.free_vfs[0].settings.trust, true);
    EXPECT_EQ(edit(spec, 2, named), spec);
    auto const other = edit(spec, 0, named);
    EXPECT_EQ(other.free_vfs.front().index, 0) << "by number";
    auto const less = edit(spec, 2, {{}, {VfAttribute::trust}});
    EXPECT_EQ(less.free_vfs[0].settings.trust, std::nullopt);
    EXPECT_TRUE(edit(less, 2, {{}, {VfAttribute::mac}}).free_vfs.empty()) << "nothing is left";
    arguments.unset = {"trust"};
    EXPECT_NE(refusal(named_settings(arguments, "see --help")), "accepted");
}

TEST(PfEdit, ADriverOfUnusedVfsIsNamedOrNone) {
    PfSpec const four{PfMode::manage, 4};
    PfEdit expected;
    expected.vf_driver = "vfio-pci";
    auto const named = edit(four, expected);
    EXPECT_EQ(named.vf_driver, "vfio-pci");
    EXPECT_EQ(edit(named, {}), named);
    expected.vf_driver = "none";
    EXPECT_EQ(edit(named, expected), four);
}

PciAddress const first_pf{0, 1, 0, 0};
PciAddress const second_pf{0, 2, 0, 0};

Network lab() {
    Network network{"lab", 100, *IpPrefix::parse("10.1.0.0/24"), {}, 9000, RdmaMode::rxe};
    network.pfs = {{first_pf, *IpAddress::parse("10.1.0.1")}};
    return network;
}

TEST(NetworkEdit, ChangesOnlyWhatIsNamed) {
    EXPECT_EQ(edit(lab(), NetworkEdit{}), lab());
    NetworkEdit desired;
    desired.vlan = "none";
    desired.mtu = "1500";
    desired.rdma = "none";
    desired.dscp = "26";
    desired.ranges = {"10.1.0.10-10.1.0.19", "10.1.0.30"};
    auto expected = lab();
    expected.vlan.reset();
    expected.mtu = 1500;
    expected.rdma = RdmaMode::none;
    expected.dscp = 26;
    expected.ranges = {*Range<IpAddress>::parse("10.1.0.10-10.1.0.19"),
                       *Range<IpAddress>::parse("10.1.0.30")};
    auto const changed = edit(lab(), desired);
    EXPECT_EQ(changed, expected);
    NetworkEdit back;
    back.vlan = "100";
    back.mtu = "9000";
    back.rdma = "rxe";
    back.dscp = "none";
    back.ranges = {"none"};
    EXPECT_EQ(edit(*changed, back), lab());
}

TEST(NetworkEdit, PfsAreAddedChangedAndRemoved) {
    NetworkEdit desired;
    desired.pfs = {{second_pf, *IpAddress::parse("10.1.0.2")}};
    auto const two = edit(lab(), desired).value();
    ASSERT_EQ(two.pfs.size(), 2U);
    desired.pfs = {{first_pf, *IpAddress::parse("10.1.0.9")}};
    desired.pfs_removed = {second_pf};
    EXPECT_EQ(edit(two, desired)->pfs,
              (std::vector<NetworkPf>{{first_pf, *IpAddress::parse("10.1.0.9")}}));
    auto const refused = edit(lab(), desired).error();
    EXPECT_EQ(refused.problem, Problem::not_found);
    EXPECT_EQ(refused.detail, "0000:02:00.0 does not carry network lab");
}

TEST(NetworkEdit, BadValuesAreNamed) {
    auto const refused = [](std::string NetworkEdit::* member, char const* value) {
        NetworkEdit desired;
        desired.*member = value;
        return refusal(edit(lab(), desired));
    };
    EXPECT_EQ(refused(&NetworkEdit::vlan, "0"), "the VLAN is a number from 1 to 4094, not '0'");
    EXPECT_EQ(refused(&NetworkEdit::mtu, "100"),
              "the MTU is a number from 1280 to 9216, not '100'");
    EXPECT_EQ(refused(&NetworkEdit::dscp, "64"), "the DSCP is a number from 0 to 63, not '64'");
    EXPECT_EQ(refused(&NetworkEdit::rdma, "yes"), "rdma is one of auto, rxe, none, not 'yes'");
    EXPECT_NE(refused(&NetworkEdit::prefix, "10.0.0.1/24"), "accepted");
    NetworkEdit range;
    range.ranges = {"10.1.0.9-10.1.0.1"};
    EXPECT_EQ(refusal(edit(lab(), range)), "10.1.0.9-10.1.0.1 ends before it begins");
}

TEST(Resolve, PfByNameOnlyWhenItIsOne) {
    std::vector<PfView> const list{test::pf("0000:01:00.0", "ens1"),
                                   test::pf("0000:02:00.0", "twin"),
                                   test::pf("0000:02:00.1", "twin")};
    EXPECT_EQ(to_string(*pf_among(list, "ens1")), "0000:01:00.0");
    auto const two = pf_among(list, "twin");
    ASSERT_FALSE(two);
    EXPECT_EQ(two.error().detail, "'twin' names 2 PFs: 0000:02:00.0, 0000:02:00.1");
    auto const none = pf_among(list, "ens");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().problem, Problem::not_found);
    EXPECT_NE(none.error().remedy.find("ens1"), std::string::npos);
}

TEST(Resolve, AttachmentByIdOrByItsVm) {
    std::vector<Attachment> const list{test::attachment("00000001", "a", "u-a"),
                                       test::attachment("00000002", "b", "u-b"),
                                       test::attachment("00000003", "b", "u-b")};
    EXPECT_EQ(attachment_among(list, "00000002"), "00000002");
    EXPECT_EQ(attachment_among(list, "a"), "00000001");
    EXPECT_EQ(attachment_among(list, "U-A"), "00000001") << "a UUID in any case";
    EXPECT_EQ(attachment_among(list, "c").error().problem, Problem::not_found);
    EXPECT_EQ(
        attachment_among(list, "b").error().detail,
        "'b' names 2 attachments: 00000002 (VF 0000:00:00.0/0), 00000003 (VF 0000:00:00.0/0)");
}

// Neither of two VMs is harmed because the other's attachment has its name.
TEST(Resolve, AnIdThatIsAlsoTheNameOfAVmIsAmbiguous) {
    std::vector<Attachment> const list{test::attachment("00000001", "a", "u-a"),
                                       test::attachment("00000002", "00000001", "u-b")};
    auto const both = attachment_among(list, "00000001");
    ASSERT_FALSE(both);
    EXPECT_EQ(both.error().problem, Problem::conflict);
    EXPECT_EQ(both.error().remedy, "name one by its VF");
}

PfView with_vfs(std::string const& pci, std::string const& ifname) {
    auto view = test::pf(pci, ifname);
    for (std::uint16_t index = 0; index < 2; ++index) {
        VfView vf;
        vf.vf.index = index;
        vf.vf.pci = view.pf.info.pci;
        vf.vf.pci.device = 16;
        vf.vf.pci.function = static_cast<std::uint8_t>(2 * index);
        vf.vf.ifname = ifname + "v" + std::to_string(index);
        view.vfs.push_back(vf);
    }
    return view;
}

TEST(Resolve, AVfByWhateverIsPrintedOfIt) {
    std::vector<PfView> const list{with_vfs("0000:01:00.0", "ens1"),
                                   with_vfs("0000:02:00.0", "ens2")};
    VfId const vf{*PciAddress::parse("0000:02:00.0"), 1};
    for (auto const& name :
         {VfName{"0000:02:00.0/1"}, VfName{"02:00.0/1"}, VfName{"ens2/1"}, VfName{"0000:02:10.2"},
          VfName{"ens2v1"}, VfName{"ens2", 1}, VfName{"0000:02:00.0", 1}})
        EXPECT_EQ(vf_among(list, name), vf) << name.text;
    auto const gone = *vf_among(list, {"0000:09:00.0/7"});
    EXPECT_EQ(to_string(gone), "0000:09:00.0/7") << "the history of a VF outlives it";
}

TEST(Resolve, WhatIsNoVfIsRefused) {
    std::vector<PfView> const list{with_vfs("0000:01:00.0", "ens1")};
    for (auto const& name :
         {VfName{"ens1/1", 1}, VfName{"ens1/"}, VfName{"/1"}, VfName{"ens1/x"}, VfName{"ens1/-1"},
          VfName{"ens1/65536"}, VfName{"ens1"}, VfName{"0000:01:00.0"}})
        EXPECT_NE(refusal(vf_among(list, name)), "accepted") << name.text;
    EXPECT_EQ(refusal(vf_among(list, {"ens1"})), "'ens1' names a PF, and not one of its VFs");
    for (auto const& name : {VfName{"ens9/1"}, VfName{"ens9"}, VfName{"0000:01:11.0"}, VfName{""}})
        EXPECT_EQ(vf_among(list, name).error().problem, Problem::not_found) << name.text;
}

TEST(Resolve, AVfWhoseNetdevIsNotTheOnlyOneIsAmbiguous) {
    auto list = std::vector{with_vfs("0000:01:00.0", "twin"), with_vfs("0000:02:00.0", "twin")};
    EXPECT_EQ(vf_among(list, {"twinv0"}).error().detail,
              "'twinv0' names 2 VFs: 0000:01:00.0/0, 0000:02:00.0/0");
    EXPECT_EQ(vf_among(list, {"twin/0"}).error().detail,
              "'twin' names 2 PFs: 0000:01:00.0, 0000:02:00.0");
}

TEST(Resolve, AVmByItsNameOrItsUuid) {
    std::string const uuid = "6f5b2f1e-6c0e-4f2a-9a55-0c3f0f0f7c11";
    VmInfo one;
    one.name = "db1";
    one.uuid = uuid;
    VmInfo other;
    other.name = uuid;
    other.uuid = "7";
    EXPECT_EQ(vm_among({one}, "db1")->uuid, uuid);
    EXPECT_EQ(vm_among({one}, "6F5B2F1E-6C0E-4F2A-9A55-0C3F0F0F7C11")->uuid, uuid);
    EXPECT_EQ(vm_among({one}, "db").error().problem, Problem::not_found);
    one.name = "db\n1";
    EXPECT_EQ(vm_among({one}, "db\\x0a1")->uuid, uuid) << "as it is printed";
    one.name = "db1";
    EXPECT_EQ(vm_among({one, other}, uuid).error().detail,
              "'" + uuid + "' names 2 VMs: db1 (" + uuid + "), " + uuid + " (7)");
}

TEST(Url, IsHttpsWithHostAndPort) {
    EXPECT_EQ(parse_url("https://host"), (HostPort{"host", 8470}));
    EXPECT_EQ(parse_url("https://127.0.0.1:99/"), (HostPort{"127.0.0.1", 99}));
    EXPECT_EQ(parse_url("https://[::1]:8471"), (HostPort{"::1", 8471}));
    for (auto const* url : {"http://host", "host", "https://", "https://host:0", "https://host:x",
                            "https://host:99999", "https://host/v1", "https://a@b", "https://[::1"})
        EXPECT_NE(refusal(parse_url(url)), "accepted") << url;
}

}  // namespace
}  // namespace vfmgr
