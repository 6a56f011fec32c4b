// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/vf.hpp"

#include <linux/if_arp.h>
#include <linux/if_ether.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;

constexpr std::uint32_t unspecified = 0xFFFFFFFF;

ifinfomsg header_of(std::uint16_t type) {
    ifinfomsg header{};
    header.ifi_index = 3;
    header.ifi_type = type;
    return header;
}

template <class T>
T of_vf(std::uint32_t vf) {
    T setting{};
    setting.vf = vf;
    return setting;
}

// As a driver reports an Ethernet VF in full.
Bytes vf_bytes(std::uint32_t vf, std::uint32_t trust) {
    auto mac = of_vf<ifla_vf_mac>(vf);
    mac.mac[0] = 0x52;
    mac.mac[5] = static_cast<std::uint8_t>(vf);
    auto vlan = of_vf<ifla_vf_vlan_info>(vf);
    vlan.vlan = 100;
    vlan.qos = 3;
    vlan.vlan_proto = big_endian(ETH_P_8021AD);
    auto rate = of_vf<ifla_vf_rate>(vf);
    rate.min_tx_rate = 10;
    rate.max_tx_rate = 500;
    auto spoofchk = of_vf<ifla_vf_spoofchk>(vf);
    spoofchk.setting = 1;
    auto link = of_vf<ifla_vf_link_state>(vf);
    link.link_state = IFLA_VF_LINK_STATE_DISABLE;
    auto trusted = of_vf<ifla_vf_trust>(vf);
    trusted.setting = trust;
    auto rss = of_vf<ifla_vf_rss_query_en>(vf);
    rss.setting = trust;
    return Bytes()
        .put(IFLA_VF_MAC, mac)
        .nest(IFLA_VF_VLAN_LIST, Bytes().put(IFLA_VF_VLAN_INFO, vlan))
        .put(IFLA_VF_RATE, rate)
        .put(IFLA_VF_SPOOFCHK, spoofchk)
        .put(IFLA_VF_LINK_STATE, link)
        .put(IFLA_VF_TRUST, trusted)
        .put(IFLA_VF_RSS_QUERY_EN, rss);
}

Bytes link_bytes(std::uint16_t type, Bytes const& list) {
    return Bytes().add(header_of(type)).text(IFLA_IFNAME, "pf0").nest(IFLA_VFINFO_LIST, list);
}

TEST(ParseVfSettings, ReadsEveryAttribute) {
    auto const list = Bytes().nest(IFLA_VF_INFO, vf_bytes(2, 1));
    auto const settings = parse_vf_settings(link_bytes(ARPHRD_ETHER, list).view());
    ASSERT_EQ(settings.size(), 1U);
    auto const& vf = settings.at(2);
    EXPECT_EQ(to_string(vf.mac.value()), "52:00:00:00:00:02");
    EXPECT_EQ(vf.vlan, (Vlan{100, 3, VlanProtocol::dot1ad}));
    EXPECT_EQ(vf.min_tx_rate_mbps, 10U);
    EXPECT_EQ(vf.max_tx_rate_mbps, 500U);
    EXPECT_EQ(vf.spoofchk, true);
    EXPECT_EQ(vf.trust, true);
    EXPECT_EQ(vf.query_rss, true);
    EXPECT_EQ(vf.link_state, LinkState::disable);
    EXPECT_EQ(vf.node_guid, std::nullopt);
}

// As Linux 6.1 answers for many VFs: the length of the list has wrapped.
TEST(ParseVfSettings, ReadsAllOfAListLongerThanItsLengthCanSay) {
    Bytes list;
    for (std::uint32_t vf = 0; vf < 600; ++vf) list.nest(IFLA_VF_INFO, vf_bytes(vf, vf % 2));
    ASSERT_GT(list.view().size(), 65'536U);
    auto const link = Bytes()
                          .add(header_of(ARPHRD_ETHER))
                          .put<std::uint32_t>(IFLA_NUM_VF, 600)
                          .nest(IFLA_VFINFO_LIST, list)
                          .text(IFLA_QDISC, "mq");
    auto const settings = parse_vf_settings(link.view());
    ASSERT_EQ(settings.size(), 600U);
    EXPECT_EQ(settings.at(599).trust, true);
    EXPECT_EQ(settings.at(598).trust, false);
}

TEST(ParseVfSettings, WhatFollowsTheListIsNoVf) {
    auto const link = Bytes()
                          .add(header_of(ARPHRD_ETHER))
                          .put<std::uint32_t>(IFLA_NUM_VF, 1)
                          .nest(IFLA_VFINFO_LIST, Bytes().nest(IFLA_VF_INFO, vf_bytes(0, 1)))
                          .nest(IFLA_VF_INFO, vf_bytes(1, 1));
    EXPECT_EQ(parse_vf_settings(link.view()).size(), 1U);
}

TEST(ParseVfSettings, IsByNumberNotByPosition) {
    // VF 0 is missing: its ndo_get_vf_config failed.
    auto const list = Bytes().nest(IFLA_VF_INFO, vf_bytes(5, 0)).nest(IFLA_VF_INFO, vf_bytes(1, 1));
    auto const settings = parse_vf_settings(link_bytes(ARPHRD_ETHER, list).view());
    ASSERT_EQ(settings.size(), 2U);
    EXPECT_EQ(settings.at(1).trust, true);
    EXPECT_EQ(settings.at(5).trust, false);
}

TEST(ParseVfSettings, WhatTheDriverDoesNotSayIsAbsent) {
    auto const list = Bytes().nest(IFLA_VF_INFO, vf_bytes(0, unspecified));
    auto const settings = parse_vf_settings(link_bytes(ARPHRD_ETHER, list).view());
    EXPECT_EQ(settings.at(0).trust, std::nullopt);
    EXPECT_EQ(settings.at(0).spoofchk, true);
}

TEST(ParseVfSettings, FallsBackToThePlainVlan) {
    auto vlan = of_vf<ifla_vf_vlan>(4);
    vlan.vlan = 7;
    auto const list = Bytes().nest(IFLA_VF_INFO, Bytes().put(IFLA_VF_VLAN, vlan));
    auto const settings = parse_vf_settings(link_bytes(ARPHRD_ETHER, list).view());
    EXPECT_EQ(settings.at(4).vlan, (Vlan{7, 0, VlanProtocol::dot1q}));
    EXPECT_EQ(settings.at(4).mac, std::nullopt);
    EXPECT_EQ(settings.at(4).max_tx_rate_mbps, std::nullopt);
}

// ConnectX-3 reports it for a VF whose VLAN was set to 0, which must read back as 0.
TEST(ParseVfSettings, Mlx4sSignForNoVlanIsNone) {
    auto plain = of_vf<ifla_vf_vlan>(0);
    plain.vlan = 4095;
    auto listed = of_vf<ifla_vf_vlan_info>(1);
    listed.vlan = 4095;
    listed.vlan_proto = big_endian(ETH_P_8021Q);
    auto const of_list = Bytes()
                             .put(IFLA_VF_MAC, of_vf<ifla_vf_mac>(1))
                             .nest(IFLA_VF_VLAN_LIST, Bytes().put(IFLA_VF_VLAN_INFO, listed));
    auto const list =
        Bytes().nest(IFLA_VF_INFO, Bytes().put(IFLA_VF_VLAN, plain)).nest(IFLA_VF_INFO, of_list);
    auto const settings = parse_vf_settings(link_bytes(ARPHRD_ETHER, list).view());
    EXPECT_EQ(settings.at(0).vlan, Vlan{});
    EXPECT_EQ(settings.at(1).vlan, Vlan{});
}

TEST(ParseVfSettings, OnInfinibandOnlyLinkStateAndGuidsAreTheVfs) {
    auto guid = of_vf<ifla_vf_guid>(0);
    guid.guid = 0x248a0703008dae2e;
    auto const info = vf_bytes(0, 0).put(IFLA_VF_IB_NODE_GUID, guid);
    auto const list = Bytes().nest(IFLA_VF_INFO, info);
    auto const settings = parse_vf_settings(link_bytes(ARPHRD_INFINIBAND, list).view());
    VfSpec expected;
    expected.link_state = LinkState::disable;
    expected.node_guid = Guid{0x248a0703008dae2e};
    EXPECT_EQ(settings.at(0), expected);
}

TEST(ParseVfSettings, NonsenseIsNoVf) {
    EXPECT_TRUE(parse_vf_settings({}).empty());
    auto const huge = Bytes().nest(IFLA_VF_INFO, vf_bytes(70'000, 1));
    EXPECT_TRUE(parse_vf_settings(link_bytes(ARPHRD_ETHER, huge).view()).empty());
    auto const nameless = Bytes().nest(IFLA_VF_INFO, Bytes());
    EXPECT_TRUE(parse_vf_settings(link_bytes(ARPHRD_ETHER, nameless).view()).empty());
}

Attributes vf_list_of(NlRequest const& request) {
    return Attributes(after(request.body(), sizeof(ifinfomsg))).nested(IFLA_VFINFO_LIST);
}

// The attributes of the one IFLA_VF_INFO in a request.
struct Sent {
    explicit Sent(VfSpec const& settings, VfPart part = VfPart::all_but_guids)
        : request(vf_message(9, std::array{VfChange{3, settings}}, part).request) {
        info = vf_list_of(request).nested(IFLA_VF_INFO);
    }
    [[nodiscard]] std::vector<std::uint16_t> types() const {
        std::vector<std::uint16_t> types;
        for (auto const& attribute : info.all()) types.push_back(attribute.type);
        return types;
    }
    NlRequest request;
    Attributes info{ByteView{}};
};

TEST(VfRequest, CarriesEverySetting) {
    VfSpec settings;
    settings.mac = MacAddress::parse("52:54:00:11:22:33").value();
    settings.vlan = Vlan{100, 5, VlanProtocol::dot1q};
    settings.spoofchk = false;
    settings.trust = true;
    settings.link_state = LinkState::enable;
    settings.max_tx_rate_mbps = 200;
    settings.query_rss = true;
    settings.msix_vectors = 8;  // in sysfs
    Sent const sent(settings);
    EXPECT_EQ(sent.types(), (std::vector<std::uint16_t>{IFLA_VF_MAC, IFLA_VF_VLAN, IFLA_VF_TX_RATE,
                                                        IFLA_VF_SPOOFCHK, IFLA_VF_LINK_STATE,
                                                        IFLA_VF_RSS_QUERY_EN, IFLA_VF_TRUST}));
    auto const mac = sent.info.value<ifla_vf_mac>(IFLA_VF_MAC).value();
    EXPECT_EQ(mac.vf, 3U);
    EXPECT_EQ(mac.mac[5], 0x33);
    EXPECT_TRUE(std::all_of(std::begin(mac.mac) + 6, std::end(mac.mac),
                            [](std::uint8_t octet) { return octet == 0; }));
    auto const vlan = sent.info.value<ifla_vf_vlan>(IFLA_VF_VLAN).value();
    EXPECT_EQ(vlan.vlan, 100U);
    EXPECT_EQ(vlan.qos, 5U);
    EXPECT_EQ(sent.info.value<ifla_vf_tx_rate>(IFLA_VF_TX_RATE).value().rate, 200U);
    EXPECT_EQ(sent.info.value<ifla_vf_spoofchk>(IFLA_VF_SPOOFCHK).value().setting, 0U);
    EXPECT_EQ(sent.info.value<ifla_vf_trust>(IFLA_VF_TRUST).value().setting, 1U);
    EXPECT_EQ(sent.info.value<ifla_vf_rss_query_en>(IFLA_VF_RSS_QUERY_EN).value().setting, 1U);
    EXPECT_EQ(sent.info.value<ifla_vf_link_state>(IFLA_VF_LINK_STATE).value().link_state, 1U);
}

TEST(VfRequest, AnAbsentSettingIsNotInTheMessage) {
    VfSpec settings;
    settings.trust = false;
    EXPECT_EQ(Sent(settings).types(), std::vector<std::uint16_t>{IFLA_VF_TRUST});
    EXPECT_TRUE(Sent(VfSpec{}).types().empty());
}

TEST(VfRequest, TaggingByProviderGoesAsAListWithZeroedPadding) {
    VfSpec settings;
    settings.vlan = Vlan{100, 0, VlanProtocol::dot1ad};
    Sent const sent(settings);
    auto const list = sent.info.nested(IFLA_VF_VLAN_LIST);
    auto const bytes = list.find(IFLA_VF_VLAN_INFO).value();
    ASSERT_EQ(bytes.size(), sizeof(ifla_vf_vlan_info));
    EXPECT_EQ(list.value<ifla_vf_vlan_info>(IFLA_VF_VLAN_INFO).value().vlan_proto,
              big_endian(ETH_P_8021AD));
    EXPECT_EQ(bytes[14], std::byte{0});
    EXPECT_EQ(bytes[15], std::byte{0});
}

TEST(VfRequest, AMinimumRateCarriesTheMaximumBesideIt) {
    VfSpec settings;
    settings.min_tx_rate_mbps = 10;
    settings.max_tx_rate_mbps = 90;
    Sent const sent(settings);
    EXPECT_EQ(sent.types(), std::vector<std::uint16_t>{IFLA_VF_RATE});
    auto const rate = sent.info.value<ifla_vf_rate>(IFLA_VF_RATE).value();
    EXPECT_EQ(rate.min_tx_rate, 10U);
    EXPECT_EQ(rate.max_tx_rate, 90U);
}

VfSpec with_guids() {
    VfSpec settings;
    settings.trust = true;
    settings.node_guid = Guid{1};
    settings.port_guid = Guid{2};
    settings.msix_vectors = 8;
    return settings;
}

TEST(VfRequest, GuidsGoAlone) {
    auto const settings = with_guids();
    EXPECT_EQ(Sent(settings, VfPart::all_but_guids).types(),
              std::vector<std::uint16_t>{IFLA_VF_TRUST});
    EXPECT_EQ(Sent(settings, VfPart::node_guid).types(),
              std::vector<std::uint16_t>{IFLA_VF_IB_NODE_GUID});
    EXPECT_EQ(Sent(settings, VfPart::port_guid).types(),
              std::vector<std::uint16_t>{IFLA_VF_IB_PORT_GUID});
    for (auto const part : vf_parts) EXPECT_TRUE(has(settings, part));
}

TEST(VfRequest, APartHasOnlyItsMembers) {
    VfSpec node;
    node.node_guid = Guid{1};
    EXPECT_EQ(only(with_guids(), VfPart::node_guid), node);
    EXPECT_EQ(only(node, VfPart::port_guid), VfSpec{});
    EXPECT_EQ(only(node, VfPart::all_but_guids), VfSpec{});
    VfSpec trust;
    trust.trust = true;
    EXPECT_EQ(only(with_guids(), VfPart::all_but_guids), trust);
    VfSpec in_sysfs;
    in_sysfs.msix_vectors = 8;
    in_sysfs.roce = true;  // devlink's
    for (auto const part : vf_parts) EXPECT_FALSE(has(in_sysfs, part));
    EXPECT_EQ(only(in_sysfs, VfPart::all_but_guids), VfSpec{});
}

TEST(VfRequest, EachMemberMakesAPart) {
    std::vector<VfPart> of_each;
    VfSpec const all{MacAddress{}, Vlan{},  false,       false, LinkState::auto_, false, 0, 0,
                     Guid{1},      Guid{2}, std::nullopt};
    for_each_member([&](VfAttribute attribute, auto) {
        for (auto const part : vf_parts)
            if (has(only(all, attribute), part)) of_each.push_back(part);
    });
    std::vector<VfPart> expected(8, VfPart::all_but_guids);
    expected.insert(expected.end(), {VfPart::node_guid, VfPart::port_guid});
    EXPECT_EQ(of_each, expected);
}

TEST(VfRequest, AVfWithoutThePartIsLeftOut) {
    std::array const expected{VfChange{1, VfSpec{}}, VfChange{2, with_guids()}};
    auto const message = vf_message(9, expected, VfPart::node_guid);
    EXPECT_EQ(message.carried, 2U);
    auto const list = vf_list_of(message.request);
    ASSERT_EQ(list.all().size(), 1U);
    EXPECT_EQ(list.nested(IFLA_VF_INFO).value<ifla_vf_guid>(IFLA_VF_IB_NODE_GUID)->vf, 2U);
}

TEST(VfRequest, GuidIsInHostOrder) {
    VfSpec settings;
    settings.port_guid = Guid{0x0102030405060708};
    Sent const sent(settings, VfPart::port_guid);
    auto const guid = sent.info.value<ifla_vf_guid>(IFLA_VF_IB_PORT_GUID).value();
    EXPECT_EQ(guid.vf, 3U);
    EXPECT_EQ(guid.guid, 0x0102030405060708U);
}

std::vector<VfChange> thousand_vfs() {
    std::vector<VfChange> expected;
    for (std::uint16_t vf = 0; vf < 1000; ++vf) {
        VfSpec settings;
        settings.mac = MacAddress{
            {2, 0, 0, 0, static_cast<std::uint8_t>(vf / 256), static_cast<std::uint8_t>(vf % 256)}};
        settings.vlan = Vlan{100, 0, VlanProtocol::dot1ad};
        settings.spoofchk = true;
        settings.trust = true;
        settings.link_state = LinkState::enable;
        settings.min_tx_rate_mbps = 1;
        settings.max_tx_rate_mbps = 100;
        expected.push_back({vf, settings});
    }
    return expected;
}

// Returns each VF's number in a message's list, in order.
std::vector<std::uint32_t> carried_by(NlRequest const& request) {
    std::vector<std::uint32_t> vfs;
    auto const list = vf_list_of(request);
    for (auto const& info : list.all())
        vfs.push_back(Attributes(info.value).value<ifla_vf_mac>(IFLA_VF_MAC)->vf);
    return vfs;
}

TEST(VfMessages, CarryEachVfOnceInAsFewAsFit) {
    auto const expected = thousand_vfs();
    std::span<VfChange const> rest(expected);
    std::vector<std::uint32_t> seen;
    std::size_t messages = 0;
    for (; !rest.empty(); ++messages) {
        auto const message = vf_message(9, rest, VfPart::all_but_guids);
        ASSERT_TRUE(message.request.complete());
        ASSERT_LT(message.request.body().size(), 65'536U + 48);
        auto const vfs = carried_by(message.request);
        ASSERT_EQ(vfs.size(), message.carried);
        seen.insert(seen.end(), vfs.begin(), vfs.end());
        rest = rest.subspan(message.carried);
    }
    std::vector<std::uint32_t> all(1000);
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(seen, all);
    // 120 bytes each: 4 for the nest, 40 MAC, 24 VLAN list, 16 rate, 3 times 12.
    EXPECT_EQ(messages, 2U);
}

}  // namespace
}  // namespace vfmgr
