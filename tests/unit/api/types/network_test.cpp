// SPDX-License-Identifier: Apache-2.0
// Networks: what no host could accept is refused by the parser.
#include "api/types/network.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;
using Violations = std::vector<Violation>;

constexpr char const* v4 =
    R"({"name": "train", "prefix": "192.168.100.0/24",
        "pfs": [{"pf": "0000:01:00.0", "host_address": "192.168.100.1"}]})";
constexpr char const* v6 =
    R"({"name": "train-6", "prefix": "fd00:1::/64",
        "pfs": [{"pf": "0000:01:00.0", "host_address": "fd00:1::1"}]})";

class NetworkRefuses : public testing::TestWithParam<Refused> {};
TEST_P(NetworkRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
constexpr auto read_network = &test::refusal_of<Network>;
constexpr char const* names = "must be 1 to 32 of a-z, 0-9 and '-'";
constexpr char const* vlans = "must be from 1 to 4094; leave it out for untagged";
constexpr char const* sizes = "must be from 1280 to 9216 bytes";
constexpr char const* outside = "must be inside the prefix 192.168.100.0/24";
constexpr char const* own = "must not be the network's own address";
constexpr char const* broadcast = "must not be the prefix's broadcast address";
constexpr char const* unicast = "must be a unicast address, not loopback";
INSTANTIATE_TEST_SUITE_P(
    Members, NetworkRefuses,
    testing::Values(
        Refused{"no_object", read_network, "", "5", "", "must be an object"},
        Refused{"name_empty", read_network, v4, R"({"name": ""})", "/name",
                "must not be empty; leave it out"},
        Refused{"name_upper", read_network, v4, R"({"name": "Train"})", "/name", names},
        Refused{"name_space", read_network, v4, R"({"name": "a b"})", "/name", names},
        Refused{"name_dots", read_network, v4, R"({"name": "../a"})", "/name", names},
        Refused{"name_foreign", read_network, v4, R"({"name": "zürich"})", "/name", names},
        Refused{"name_nul", read_network, v4, R"({"name": "a\u0000"})", "/name", names},
        Refused{"name_33_bytes", read_network, v4,
                R"({"name": "123456789012345678901234567890123"})", "/name", names},
        Refused{"vlan_0", read_network, v4, R"({"vlan": 0})", "/vlan", vlans},
        Refused{"vlan_4095", read_network, v4, R"({"vlan": 4095})", "/vlan", vlans},
        Refused{"vlan_negative", read_network, v4, R"({"vlan": -1})", "/vlan",
                "must be a whole number from 0 to 65535"},
        Refused{"pkey_0", read_network, v4, R"({"pkey": {"key": 0}})", "/pkey/key",
                "must be from 1 to 32767: the P_Key without its highest bit"},
        Refused{"pkey_with_membership", read_network, v4, R"({"pkey": {"key": 32769}})",
                "/pkey/key", "must be from 1 to 32767: the P_Key without its highest bit"},
        Refused{"pkey_member", read_network, v4, R"({"pkey": {"key": 1, "membership": "both"}})",
                "/pkey/membership", "must be one of full, limited"},
        Refused{"pkey_and_vlan", read_network, v4, R"({"vlan": 100, "pkey": {"key": 1}})", "/pkey",
                "can't be combined with vlan: a network is Ethernet or InfiniBand"},
        Refused{"mtu_1279", read_network, v4, R"({"mtu": 1279})", "/mtu", sizes},
        Refused{"mtu_9217", read_network, v4, R"({"mtu": 9217})", "/mtu", sizes},
        Refused{"dscp_64", read_network, v4, R"({"dscp": 64})", "/dscp",
                "must be from 0 to 63; leave it out for best effort"},
        Refused{"dscp_negative", read_network, v4, R"({"dscp": -1})", "/dscp",
                "must be a whole number from 0 to 255"},
        Refused{"rdma", read_network, v4, R"({"rdma": "hardware"})", "/rdma",
                "must be one of auto, rxe, none"},
        Refused{"prefix_with_host", read_network, v4, R"({"prefix": "192.168.100.1/24"})",
                "/prefix", "'192.168.100.1/24' has bits set beyond its length"},
        Refused{"prefix_missing", read_network, v4, R"({"prefix": null})", "/prefix",
                "is required"},
        Refused{"host_missing", read_network, v4, R"({"pfs": [{"pf": "0000:01:00.0"}]})",
                "/pfs/0/host_address", "is required"}),
    test::name_of);

TEST(Network, SurvivesItsJson) {
    for (auto const* base : {v4, v6})
        for (auto const* patch : {"{}", R"({"vlan": 1, "mtu": 1280, "rdma": "rxe", "dscp": 0})",
                                  R"({"vlan": 4094, "mtu": 9216, "rdma": "none", "dscp": 63})",
                                  R"({"name": "0123456789-abcdefghijklmnopqrstu"})"})
            test::expect_survives<Network>(test::patched(base, patch));
}

std::string with_host(char const* prefix, char const* host) {
    nlohmann::json const on{{"pf", "0000:01:00.0"}, {"host_address", host}};
    return nlohmann::json{{"name", "train"}, {"prefix", prefix}, {"pfs", {on}}}.dump();
}

TEST(Network, TheHostsAddressIsOneOfItsOwn) {
    struct Row {
        char const *prefix, *host, *detail;
    };
    for (auto const& [prefix, host, detail] :
         {Row{"192.168.100.0/24", "192.168.101.1", outside},
          {"192.168.100.0/24", "fd00:1::1", outside},
          {"192.168.100.0/24", "::ffff:192.168.100.1", outside},
          {"192.168.100.0/24", "192.168.100.0", own},
          {"192.168.100.0/24", "192.168.100.255", broadcast},
          {"fd00:1::/64", "fd00:1::", own},
          {"::/64", "::1", unicast},
          {"10.0.0.0/30", "10.0.0.3", broadcast},
          {"127.0.0.0/8", "127.0.0.1", unicast},
          {"224.0.0.0/4", "239.1.2.3", unicast},
          {"0.0.0.0/0", "0.0.0.0", unicast},
          {"255.255.255.255/32", "255.255.255.255", unicast},
          {"ff02::/16", "ff02::1", unicast}})
        EXPECT_EQ(test::refusal_of<Network>(with_host(prefix, host)).violations,
                  (Violations{{"/pfs/0/host_address", detail}}))
            << host << " in " << prefix;
    for (auto const& [prefix, host] : {std::pair{"10.0.0.0/31", "10.0.0.0"},
                                       {"10.0.0.0/31", "10.0.0.1"},
                                       {"10.0.0.7/32", "10.0.0.7"},
                                       {"fd00::/127", "fd00::"},
                                       {"fd00::/64", "fd00::ffff:ffff:ffff:ffff"}})
        test::expect_survives<Network>(with_host(prefix, host));
}

Violations violations_of(char const* patch) {
    return from_json_text<Network>(test::patched(v4, patch)).error().violations;
}

TEST(Network, APfCarriesItOnceWithAnAddressOfItsOwn) {
    EXPECT_EQ(violations_of(R"({"pfs": [
                  {"pf": "0000:01:00.0", "host_address": "192.168.100.1"},
                  {"pf": "0000:01:00.0", "host_address": "192.168.100.2"},
                  {"pf": "0000:02:00.0", "host_address": "192.168.100.1"}]})"),
              (Violations{{"/pfs/1/pf", "is already in pfs/0"},
                          {"/pfs/2/host_address", "is already that of pfs/0"}}));
}

TEST(Network, RangesAreInsideThePrefixAndApart) {
    test::expect_survives<Network>(
        test::patched(v4, R"({"ranges": ["192.168.100.10-192.168.100.19", "192.168.100.5"]})"));
    EXPECT_EQ(violations_of(R"({"ranges": ["192.168.100.250-192.168.101.9", "fd00::1",
                                           "192.168.100.255"]})"),
              (Violations{{"/ranges/0", outside},
                          {"/ranges/1", outside},
                          {"/ranges/2", "overlaps 192.168.100.250-192.168.101.9"}}));
    EXPECT_EQ(violations_of(R"({"ranges": ["192.168.100.9-192.168.100.1"]})"),
              (Violations{{"/ranges/0", "192.168.100.9-192.168.100.1 ends before it begins"}}));
    EXPECT_EQ(violations_of(R"({"ranges": ["-"]})").size(), 1U);
}

TEST(Network, HasAtMost64RangesAndPfs) {
    nlohmann::json many{{"ranges", nlohmann::json::array()}, {"pfs", nlohmann::json::array()}};
    for (int i = 0; i < 65; ++i) {
        many["ranges"].push_back(fmt::format("192.168.100.{}", 100 + i));
        many["pfs"].push_back({{"pf", fmt::format("0000:{:02x}:00.0", i)},
                               {"host_address", fmt::format("192.168.100.{}", 1 + i)}});
    }
    EXPECT_EQ(violations_of(many.dump().c_str()),
              (Violations{{"/ranges", "must be at most 64"}, {"/pfs", "must be at most 64"}}));
}

TEST(Network, ItsPathMayNameIt) {
    EXPECT_EQ(from_json_text<Network>(R"({"prefix": "10.0.0.0/8"})").value().name, "");
}

TEST(Network, AVmHasAnAddressInsideThatIsNotTheHosts) {
    auto const network = from_json_text<Network>(v4).value();
    auto const can_be = [&](char const* text) {
        return can_be_a_vms(network, IpAddress::parse(text).value());
    };
    EXPECT_TRUE(can_be("192.168.100.2"));
    for (auto const* const other :
         {"192.168.100.0", "192.168.100.1", "192.168.100.255", "192.168.101.2", "fd00:1::2"})
        EXPECT_FALSE(can_be(other)) << other;
}

TEST(Pkeys, AreWrittenWithTheirMembership) {
    EXPECT_EQ(parse_pkey("0x0001"), (Pkey{1, PkeyMembership::full}));
    EXPECT_EQ(parse_pkey("0x8001=limited"), (Pkey{1, PkeyMembership::limited}));
    EXPECT_EQ(parse_pkey("32767=full"), (Pkey{0x7fff, PkeyMembership::full}));
    for (auto const* text : {"", "0", "0x", "0x8000", "0x10000", "70000", "1=", "1=both", "one"})
        EXPECT_FALSE(parse_pkey(text)) << text;
    EXPECT_EQ(to_string(Pkey{1, PkeyMembership::limited}), "0x0001=limited");
}

// OpenSM 3.3.23 reads it so: osm_prtn_config.c, partition_create() and partition_add_port().
TEST(Pkeys, HaveALineForTheSubnetManager) {
    constexpr Guid port{0x0202'c9ff'fe11'0002};
    EXPECT_EQ(partition_line({1, PkeyMembership::limited}, port, 2044),
              "vfmgr-0001=0x0001,indx0,ipoib:0x0202c9fffe110002=limited;");
    EXPECT_EQ(partition_line({0x7abc, PkeyMembership::full}, port, 2045),
              "vfmgr-7abc=0x7abc,indx0,ipoib,mtu=5:0x0202c9fffe110002=full;");
}

}  // namespace
}  // namespace vfmgr
