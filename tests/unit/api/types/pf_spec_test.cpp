// SPDX-License-Identifier: Apache-2.0
// PfSpec and its networks: what no host could accept is refused by the parser.
#include <fmt/ranges.h>

#include "api/types/pf.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;

constexpr char const* v4 =
    R"({"name": "train", "prefix": "192.168.100.0/24", "host_address": "192.168.100.1"})";
constexpr char const* v6 =
    R"({"name": "train-6", "prefix": "fd00:1::/64", "host_address": "fd00:1::1"})";

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
        Refused{"name_missing", read_network, v4, R"({"name": null})", "/name", "is required"},
        Refused{"name_empty", read_network, v4, R"({"name": ""})", "/name", names},
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
        Refused{"host_missing", read_network, v4, R"({"host_address": null})", "/host_address",
                "is required"},
        Refused{"host_outside", read_network, v4, R"({"host_address": "192.168.101.1"})",
                "/host_address", outside},
        Refused{"host_of_other_family", read_network, v4, R"({"host_address": "fd00:1::1"})",
                "/host_address", outside},
        Refused{"host_mapped", read_network, v4, R"({"host_address": "::ffff:192.168.100.1"})",
                "/host_address", outside},
        Refused{"host_is_network", read_network, v4, R"({"host_address": "192.168.100.0"})",
                "/host_address", own},
        Refused{"host_is_broadcast", read_network, v4, R"({"host_address": "192.168.100.255"})",
                "/host_address", broadcast},
        Refused{"host_is_broadcast_of_30", read_network, v4,
                R"({"prefix": "10.0.0.0/30", "host_address": "10.0.0.3"})", "/host_address",
                broadcast},
        Refused{"host_is_loopback", read_network, v4,
                R"({"prefix": "127.0.0.0/8", "host_address": "127.0.0.1"})", "/host_address",
                unicast},
        Refused{"host_is_multicast", read_network, v4,
                R"({"prefix": "224.0.0.0/4", "host_address": "239.1.2.3"})", "/host_address",
                unicast},
        Refused{"host_is_unspecified", read_network, v4,
                R"({"prefix": "0.0.0.0/0", "host_address": "0.0.0.0"})", "/host_address", unicast},
        Refused{"host_is_reserved", read_network, v4,
                R"({"prefix": "255.255.255.255/32", "host_address": "255.255.255.255"})",
                "/host_address", unicast},
        Refused{"v6_is_network", read_network, v6, R"({"host_address": "fd00:1::"})",
                "/host_address", own},
        Refused{"v6_is_loopback", read_network, v6, R"({"prefix": "::/64", "host_address": "::1"})",
                "/host_address", unicast},
        Refused{"v6_is_multicast", read_network, v6,
                R"({"prefix": "ff02::/16", "host_address": "ff02::1"})", "/host_address", unicast}),
    test::name_of);

TEST(Network, SurvivesItsJson) {
    for (auto const* base : {v4, v6})
        for (auto const* patch :
             {"{}", R"({"vlan": 1, "mtu": 1280, "rdma": "rxe", "dscp": 0})",
              R"({"vlan": 4094, "mtu": 9216, "rdma": "none", "dscp": 63})",
              R"({"name": "0123456789-abcdefghijklmnopqrstu"})",
              R"({"prefix": "10.0.0.0/31", "host_address": "10.0.0.0"})",
              R"({"prefix": "10.0.0.0/31", "host_address": "10.0.0.1"})",
              R"({"prefix": "10.0.0.7/32", "host_address": "10.0.0.7"})",
              R"({"prefix": "fd00::/127", "host_address": "fd00::"})",
              R"({"prefix": "fd00::/64", "host_address": "fd00::ffff:ffff:ffff:ffff"})"})
            test::expect_survives<Network>(test::patched(base, patch));
}

std::string network(char const* name, char const* prefix, int vlan) {
    auto document = nlohmann::json::parse(v4);
    document["name"] = name;
    auto const parsed = IpPrefix::parse(prefix).value();
    document["prefix"] = prefix;
    document["host_address"] = to_string(parsed.host(1).value());
    if (vlan != 0) document["vlan"] = vlan;
    return document.dump();
}
std::string spec_with(std::vector<std::string> const& networks) {
    return fmt::format(R"({{"networks": [{}]}})", fmt::join(networks, ","));
}
std::vector<Violation> violations_of(std::vector<std::string> const& networks) {
    return test::refusal_of<PfSpec>(spec_with(networks)).violations;
}
using Violations = std::vector<Violation>;

TEST(PfSpec, NetworksOfOneVlanDoNotOverlap) {
    EXPECT_EQ(violations_of({network("a", "10.0.0.0/8", 0), network("b", "10.1.0.0/16", 0)}),
              (Violations{{"/networks/1/prefix", "overlaps 10.0.0.0/8 of a in the same VLAN"}}));
    EXPECT_EQ(violations_of({network("a", "10.1.0.0/16", 100), network("c", "10.2.0.0/16", 100),
                             network("b", "10.0.0.0/8", 100)}),
              (Violations{{"/networks/2/prefix", "overlaps 10.1.0.0/16 of a in the same VLAN"},
                          {"/networks/2/prefix", "overlaps 10.2.0.0/16 of c in the same VLAN"}}));
    // Two VLANs are two wires; so are two families.
    test::expect_survives<PfSpec>(
        spec_with({network("a", "10.0.0.0/8", 0), network("b", "10.0.0.0/8", 1),
                   network("c", "10.0.0.0/8", 2), network("d", "fd00::/8", 0),
                   network("e", "11.0.0.0/8", 0)}));
}

TEST(PfSpec, NamesOfNetworksAreUnique) {
    EXPECT_EQ(violations_of({network("a", "10.0.0.0/24", 1), network("b", "10.0.1.0/24", 1),
                             network("a", "10.0.2.0/24", 1)}),
              (Violations{{"/networks/2/name", "is already the name of networks/0"}}));
}

TEST(PfSpec, PointersNameTheRightNetwork) {
    EXPECT_EQ(violations_of({network("a", "10.0.0.0/24", 1), network("B", "10.0.1.0/24", 1)}),
              (Violations{{"/networks/1/name", names}}));
    EXPECT_EQ(violations_of({"5", network("b", "10.0.1.0/24", 4095)}),
              (Violations{{"/networks/0", "must be an object"}, {"/networks/1/vlan", vlans}}));
}

TEST(PfSpec, HasAtMost64Networks) {
    std::vector<std::string> networks;
    for (int i = 1; i <= 64; ++i)
        networks.push_back(network(fmt::format("n{}", i).c_str(), "10.0.0.0/24", i));
    test::expect_survives<PfSpec>(spec_with(networks));
    networks.push_back(network("n65", "10.0.0.0/24", 65));
    EXPECT_EQ(violations_of(networks), (Violations{{"/networks", "must be at most 64"}}));
}

TEST(PfSpec, MembersMayBeLeftOut) {
    EXPECT_EQ(from_json_text<PfSpec>("{}").value(), PfSpec{});
    EXPECT_EQ(test::refusal_of<PfSpec>(R"({"mode": null, "num_vfs": null})").violations,
              (Violations{{"/mode", "must not be null; leave it out"},
                          {"/num_vfs", "must not be null; leave it out"}}));
    EXPECT_EQ(from_json_text<PfSpec>(R"({"num_vfs": 0})").value().num_vfs, 0)
        << "no VFs is a request";
    test::expect_survives<PfSpec>(R"({"mode": "enforce", "num_vfs": 65535})");
    EXPECT_EQ(test::refusal_of<PfSpec>(R"({"num_vfs": 65536})").violations,
              (Violations{{"/num_vfs", "must be a whole number from 0 to 65535"}}));
    test::expect_survives<PfSpec>(R"({"vf_driver": "mlx5_vfio_pci"})");
    for (auto const* const name : {"", "..", "a/b", "vfio pci"})
        EXPECT_EQ(
            test::refusal_of<PfSpec>(fmt::format(R"({{"vf_driver": "{}"}})", name)).violations,
            (Violations{{"/vf_driver", "must be a driver's name as in /sys/bus/pci/drivers"}}))
            << name;
}

TEST(PfSpec, FindsItsNetworksByName) {
    auto const spec = from_json_text<PfSpec>(spec_with({network("a", "10.0.0.0/24", 1),
                                                        network("b", "10.0.1.0/24", 1)}))
                          .value();
    EXPECT_EQ(find_network(spec, "b"), &spec.networks[1]);
    EXPECT_EQ(find_network(spec, "B"), nullptr);
    EXPECT_EQ(find_network(spec, ""), nullptr);
}

}  // namespace
}  // namespace vfmgr
