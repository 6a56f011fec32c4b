// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "service/cli/attach_spec.hpp"
#include "service/cli/connection.hpp"
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
    auto const least = attachment_spec(arguments, pf);
    ASSERT_TRUE(least);
    AttachmentSpec bare;
    bare.vm = "db1";
    bare.pf = pf;
    EXPECT_EQ(*least, bare);

    arguments.vf = 2;
    arguments.network = "lab";
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
    auto const most = attachment_spec(arguments, pf);
    ASSERT_TRUE(most) << most.error().detail;
    EXPECT_EQ(nlohmann::json(*most), nlohmann::json::parse(R"({
        "vm": "db1", "pf": "0000:01:00.0", "vf": 2, "network": "lab", "address": "10.1.0.5",
        "settings": {"mac": "02:00:00:00:00:05", "trust": true, "spoofchk": false,
            "query_rss": true, "node_guid": "24:8a:07:03:00:8d:ae:2e",
            "port_guid": "24:8a:07:03:00:8d:ae:2f", "msix_vectors": 12,
                     "vlan": {"id": 7, "qos": 1, "proto": "802.1q"}, "link_state": "auto",
                     "max_tx_rate_mbps": 1000},
        "best_effort": ["trust", "vlan"], "persistence": "live", "verify": "required",
        "verify_timeout_seconds": 60, "verify_profile": "deep", "verify_every_seconds": 3600})"));
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

PfSpec lab() {
    PfSpec spec{PfMode::manage, 4, {}};
    spec.networks.push_back({"lab", 100, *IpPrefix::parse("10.1.0.0/24"),
                             *IpAddress::parse("10.1.0.1"), 9000, RdmaMode::rxe});
    return spec;
}

TEST(PfEdit, ChangesOnlyWhatIsNamed) {
    EXPECT_EQ(edit(lab(), {}), lab());
    auto expected = lab();
    expected.num_vfs = 7;
    EXPECT_EQ(edit(lab(), {.num_vfs = 7, .mode = {}, .networks = {}, .networks_removed = {}}),
              expected);
    expected = lab();
    expected.mode = PfMode::enforce;
    expected.networks[0].mtu = 1500;
    EXPECT_EQ(edit(lab(), {.num_vfs = {},
                           .mode = PfMode::enforce,
                           .networks = {"name=lab,mtu=1500"},
                           .networks_removed = {}}),
              expected);
}

TEST(PfEdit, ADriverOfUnusedVfsIsNamedOrNone) {
    PfEdit expected;
    expected.vf_driver = "vfio-pci";
    auto const named = edit(lab(), expected).value();
    EXPECT_EQ(named.vf_driver, "vfio-pci");
    EXPECT_EQ(edit(named, {}), named);
    expected.vf_driver = "none";
    EXPECT_EQ(edit(named, expected), lab());
}

TEST(PfEdit, ANetworksDscpIsSetAndTakenAway) {
    auto const set = edit_network(lab(), "name=lab,dscp=26").value();
    EXPECT_EQ(set.dscp, 26);
    PfSpec spec = lab();
    spec.networks[0] = set;
    EXPECT_EQ(edit_network(spec, "name=lab,mtu=9000")->dscp, 26) << "what is not named is kept";
    EXPECT_EQ(edit_network(spec, "name=lab,dscp=none"), lab().networks[0]);
    EXPECT_EQ(refusal(edit_network(spec, "name=lab,dscp=64")),
              "dscp is a number from 0 to 63, not '64'");
}

TEST(PfEdit, AddsAndRemovesNetworks) {
    PfEdit expected;
    expected.networks = {"name=b,prefix=fd00:1::/64,host=fd00:1::1", "name=lab,vlan=none"};
    auto const added = edit(lab(), expected);
    ASSERT_TRUE(added) << added.error().detail;
    ASSERT_EQ(added->networks.size(), 2u);
    EXPECT_EQ(added->networks[0].vlan, std::nullopt);
    EXPECT_EQ(added->networks[1].name, "b");
    EXPECT_EQ(added->networks[1].mtu, 1500u);
    expected.networks = {};
    expected.networks_removed = {"lab"};
    EXPECT_TRUE(edit(lab(), expected)->networks.empty());
    expected.networks_removed = {"none"};
    EXPECT_EQ(edit(lab(), expected).error().problem, Problem::not_found);
    // Removed and given again: from scratch; nothing of the old one stays.
    expected.networks_removed = {"lab"};
    expected.networks = {"name=lab,prefix=10.2.0.0/24,host=10.2.0.1"};
    EXPECT_EQ(edit(lab(), expected)->networks[0].vlan, std::nullopt);
}

TEST(PfEdit, BadNetworksAreNamed) {
    EXPECT_EQ(refusal(edit_network({}, "name=a")), "the new network 'a' needs prefix and host");
    EXPECT_EQ(refusal(edit_network({}, "prefix=10.0.0.0/24")),
              "--network prefix=10.0.0.0/24 does not name the network");
    EXPECT_EQ(refusal(edit_network(lab(), "name=lab,color=red")), "--network has no key 'color'");
    EXPECT_EQ(refusal(edit_network(lab(), "name=lab,mtu=1,mtu=2")), "--network has 'mtu' twice");
    EXPECT_EQ(refusal(edit_network(lab(), "name=lab,mtu")),
              "'mtu' in --network is not of the form key=value");
    EXPECT_EQ(refusal(edit_network(lab(), "name=lab,vlan=0")),
              "vlan is a number from 1 to 4094, not '0'");
    EXPECT_EQ(refusal(edit_network(lab(), "name=lab,rdma=yes")),
              "rdma is one of auto, rxe, none, not 'yes'");
    EXPECT_NE(refusal(edit_network(lab(), "name=lab,prefix=10.0.0.1/24")), "accepted");
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
    EXPECT_EQ(attachment_among(list, "u-a"), "00000001");
    EXPECT_EQ(attachment_among(list, "c").error().problem, Problem::not_found);
    EXPECT_EQ(attachment_among(list, "b").error().detail,
              "VM 'b' has 2 attachments: 00000002, 00000003");
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
