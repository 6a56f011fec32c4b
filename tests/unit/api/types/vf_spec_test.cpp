// SPDX-License-Identifier: Apache-2.0
// Settings that may be requested for a VF, and that a driver may report of it.
#include "api/types/vf.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;

constexpr char const* all = R"({"mac": "02:00:00:00:00:01",
    "vlan": {"id": 4094, "qos": 7, "proto": "802.1ad"}, "spoofchk": true, "trust": false,
    "link_state": "disable", "query_rss": true,
    "min_tx_rate_mbps": 4294967295, "max_tx_rate_mbps": 4294967295,
    "node_guid": "24:8a:07:03:00:8d:ae:2e", "port_guid": "ff:ff:ff:ff:ff:ff:ff:ff",
    "msix_vectors": 2048, "roce": true})";

class VfSpecRefuses : public testing::TestWithParam<Refused> {};
TEST_P(VfSpecRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
constexpr auto read_vf_spec = &test::refusal_of<VfSpec>;
constexpr char const* multicast = "must not be a multicast address: the first octet must be even";
constexpr char const* no_mac = "'2' is not a MAC address such as 02:1a:4b:00:00:01";
constexpr char const* vlan_ids = "must be from 0 to 4094; 0 means no tag";
constexpr char const* no_guid = "'0x0' is not a GUID such as 24:8a:07:03:00:8d:ae:2e";
INSTANTIATE_TEST_SUITE_P(
    Specs, VfSpecRefuses,
    testing::Values(
        Refused{"zero_mac", read_vf_spec, "{}", R"({"mac": "00:00:00:00:00:00"})", "/mac",
                "must not be the zero address; leave it out to have one chosen"},
        Refused{"multicast_mac", read_vf_spec, "{}", R"({"mac": "01:00:5e:00:00:01"})", "/mac",
                multicast},
        Refused{"broadcast_mac", read_vf_spec, "{}", R"({"mac": "ff:ff:ff:ff:ff:ff"})", "/mac",
                multicast},
        Refused{"no_mac", read_vf_spec, "{}", R"({"mac": "2"})", "/mac", no_mac},
        Refused{"msix_2049", read_vf_spec, "{}", R"({"msix_vectors": 2049})", "/msix_vectors",
                "must not exceed 2048"},
        Refused{"vlan_4095", read_vf_spec, "{}", R"({"vlan": {"id": 4095}})", "/vlan/id", vlan_ids},
        Refused{"vlan_65535", read_vf_spec, "{}", R"({"vlan": {"id": 65535}})", "/vlan/id",
                vlan_ids},
        Refused{"vlan_65536", read_vf_spec, "{}", R"({"vlan": {"id": 65536}})", "/vlan/id",
                "must be a whole number from 0 to 65535"},
        Refused{"vlan_without_id", read_vf_spec, "{}", R"({"vlan": {"qos": 1}})", "/vlan/id",
                "is required"},
        Refused{"vlan_number", read_vf_spec, "{}", R"({"vlan": 100})", "/vlan",
                "must be an object"},
        Refused{"vlan_qos", read_vf_spec, "{}", R"({"vlan": {"id": 1, "qos": 8}})", "/vlan/qos",
                "must be from 0 to 7"},
        Refused{"vlan_protocol", read_vf_spec, "{}", R"({"vlan": {"id": 1, "proto": "802.1Q"}})",
                "/vlan/proto", "must be one of 802.1q, 802.1ad"},
        Refused{"vlan_unknown", read_vf_spec, "{}", R"({"vlan": {"id": 1, "pcp": 3}})", "/vlan/pcp",
                "is not known here"},
        Refused{"rate_above_max", read_vf_spec, "{}",
                R"({"min_tx_rate_mbps": 101, "max_tx_rate_mbps": 100})", "/min_tx_rate_mbps",
                "must not exceed max_tx_rate_mbps, 100"},
        Refused{"rate_negative", read_vf_spec, "{}", R"({"max_tx_rate_mbps": -1})",
                "/max_tx_rate_mbps", "must be a whole number from 0 to 4294967295"},
        Refused{"rate_2_to_32", read_vf_spec, "{}", R"({"min_tx_rate_mbps": 4294967296})",
                "/min_tx_rate_mbps", "must be a whole number from 0 to 4294967295"},
        Refused{"guid", read_vf_spec, "{}", R"({"node_guid": "0x0"})", "/node_guid", no_guid},
        Refused{"unknown", read_vf_spec, "{}", R"({"max_tx_rate": 1})", "/max_tx_rate",
                "is not known here"}),
    test::name_of);

TEST(VfSpec, SurvivesItsJson) {
    for (auto const* text :
         {"{}", all, R"({"vlan": {"id": 0}})", R"({"mac": "fe:ff:ff:ff:ff:ff"})",
          R"({"min_tx_rate_mbps": 100, "max_tx_rate_mbps": 100})",
          R"({"min_tx_rate_mbps": 100, "max_tx_rate_mbps": 0})", R"({"min_tx_rate_mbps": 100})"})
        test::expect_survives<VfSpec>(text);
    EXPECT_EQ(nlohmann::json(from_json_text<VfSpec>(all).value()), nlohmann::json::parse(all));
}

// VLAN 0 requests "no tag"; an absent VLAN requests nothing.
TEST(VfSpec, VlanZeroIsNotAnAbsentVlan) {
    auto const untagged = from_json_text<VfSpec>(R"({"vlan": {"id": 0}})").value();
    EXPECT_EQ(untagged.vlan, Vlan{});
    EXPECT_FALSE(empty(untagged));
    auto const no_opinion = from_json_text<VfSpec>("{}").value();
    EXPECT_EQ(no_opinion.vlan, std::nullopt);
    EXPECT_TRUE(empty(no_opinion));
    EXPECT_TRUE(nlohmann::json(no_opinion).empty());
    EXPECT_FALSE(from_json_text<VfSpec>(R"({"vlan": null})")) << "which may mean to take it away";
}

TEST(VfSpec, ReportedFactsKnowNoRules) {
    auto const text = R"({"mac": "00:00:00:00:00:00", "min_tx_rate_mbps": 9, "max_tx_rate_mbps": 5,
        "vlan": null})";
    auto const document = nlohmann::json::parse(text);
    std::vector<Violation> violations;
    JsonReader reader(document, "", violations);
    VfSpec reported;
    read_reported(reader, reported);
    EXPECT_TRUE(violations.empty());
    ASSERT_TRUE(reported.mac);
    EXPECT_TRUE(reported.mac->zero());
    EXPECT_EQ(reported.vlan, std::nullopt);

    EXPECT_EQ(nlohmann::json(reported), nlohmann::json::parse(R"({"mac": "00:00:00:00:00:00",
        "min_tx_rate_mbps": 9, "max_tx_rate_mbps": 5})"))
        << "what is not reported is left out";
}

TEST(VfSpec, MembersAreThoseThatAreWritten) {
    auto const document = nlohmann::json::parse(all);
    EXPECT_EQ(document.size(), enum_names<VfAttribute>.size());
    for (auto const& [attribute, member] : enum_names<VfAttribute>)
        EXPECT_TRUE(document.contains(member)) << member;
}

TEST(VfSpec, OnlyKeepsOneMember) {
    VfSpec settings;
    settings.trust = true;
    settings.mac = MacAddress{};
    VfSpec trust;
    trust.trust = true;
    EXPECT_EQ(only(settings, VfAttribute::trust), trust);
    EXPECT_TRUE(empty(only(settings, VfAttribute::vlan)));
}

TEST(VfSpec, OverlayTakesOnlyWhatIsThere) {
    auto const spec = from_json_text<VfSpec>(all).value();
    EXPECT_EQ(overlay(VfSpec{}, spec), spec);
    EXPECT_EQ(overlay(spec, VfSpec{}), spec);
    for (auto const& [attribute, member] : enum_names<VfAttribute>) {
        auto one = nlohmann::json::object();
        one[member] = nlohmann::json::parse(all)[member];
        auto const over = from_json_document<VfSpec>(one).value();
        EXPECT_EQ(overlay(VfSpec{}, over), over) << member;
        EXPECT_FALSE(empty(over)) << member;
    }
    VfSpec base;
    base.trust = true;
    base.max_tx_rate_mbps = 1;
    VfSpec over;
    over.trust = false;
    EXPECT_EQ(overlay(base, over).trust, false) << "false is a spec";
    EXPECT_EQ(overlay(base, over).max_tx_rate_mbps, 1U);
}

}  // namespace
}  // namespace vfmgr
