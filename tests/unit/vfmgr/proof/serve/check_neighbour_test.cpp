// SPDX-License-Identifier: Apache-2.0
// Queries a real kernel in a network namespace for the MAC that a served responder sends to.
#include "vfmgr/proof/serve/local_end.hpp"

#include <gmock/gmock.h>
#include <linux/neighbour.h>

#include "tests/unit/vfmgr/netlink/two_networks.hpp"

namespace vfmgr::serve {
namespace {

auto const own = IpAddress::parse("192.168.77.1").value();
auto const peer = IpAddress::parse("192.168.77.9").value();
auto const router = IpAddress::parse("192.168.77.254").value();
auto const vf_mac = MacAddress::parse("52:54:00:11:22:33").value();
auto const other_mac = MacAddress::parse("52:54:00:99:99:99").value();

IpRoute route(char const* prefix, int ifindex, std::optional<IpAddress> gateway = {}) {
    IpRoute made;
    made.prefix = IpPrefix::parse(prefix).value();
    made.ifindex = ifindex;
    made.gateway = gateway;
    return made;
}

TEST(OnLink, TheLongestPrefixOfTheNetdevDecides) {
    EXPECT_FALSE(on_link(peer, 2, {}));
    EXPECT_FALSE(on_link(peer, 2, {route("0.0.0.0/0", 2, router)}));
    EXPECT_TRUE(on_link(peer, 2, {route("0.0.0.0/0", 2, router), route("192.168.77.0/24", 2)}));
    EXPECT_FALSE(on_link(peer, 2, {route("192.168.77.0/24", 3)}));
    EXPECT_FALSE(
        on_link(peer, 2, {route("192.168.77.9/32", 2, router), route("192.168.77.0/24", 2)}));
}

TEST(ResolvedNeighbour, OnlyWhatTheKernelSendsTo) {
    EXPECT_FALSE(resolved(peer, 2, {}));
    EXPECT_EQ(resolved(peer, 2, {{2, peer, vf_mac, NUD_STALE}})->mac, vf_mac);
    EXPECT_FALSE(resolved(peer, 2, {{3, peer, vf_mac, NUD_REACHABLE}}));
    EXPECT_FALSE(resolved(peer, 2, {{2, peer, std::nullopt, NUD_INCOMPLETE}}));
    EXPECT_FALSE(resolved(peer, 2, {{2, peer, vf_mac, NUD_FAILED}}));
}

// "near0" with an address of this machine; the VF's machine is at the far end.
class CheckNeighbour : public test::TwoNetworks {
  protected:
    void with_far_end(std::function<void()> const& body) {
        with_veth([&] {
            give("near0", own);
            at_the_far_end([&] { give("far0", peer); });
            body();
        });
    }
    void know(MacAddress const& mac) {
        ASSERT_TRUE(
            replace_neighbour(*socket_, {netdev("near0").ifindex, peer, mac}, test::soon()));
    }
    static Result<void> checked(MacAddress const& permitted) {
        verify::SessionPermit permit;
        permit.vf_mac = permitted;
        permit.peer_address = peer;
        permit.host_address = own;
        permit.host_netdev = "near0";
        return check_neighbour(permit);
    }
};

TEST_F(CheckNeighbour, WhoAnswersIsTheVf) {
    with_far_end([&] {
        auto const sound = checked(far_mac_);
        EXPECT_TRUE(sound) << sound.error().detail;
    });
}

TEST_F(CheckNeighbour, AnEntryOfBeforeIsAskedForAnew) {
    with_far_end([&] {
        know(other_mac);
        auto const sound = checked(far_mac_);
        EXPECT_TRUE(sound) << sound.error().detail;
    });
}

TEST_F(CheckNeighbour, AnotherMachineWithTheAddressIsNamed) {
    with_far_end([&] {
        auto const taken = checked(other_mac);
        ASSERT_FALSE(taken);
        EXPECT_EQ(taken.error().problem, Problem::conflict);
        EXPECT_EQ(taken.error().detail, "on near0, 192.168.77.9 is at MAC " + to_string(far_mac_) +
                                            ", but the VF has 52:54:00:99:99:99");
    });
}

TEST_F(CheckNeighbour, NobodyThereIsNamed) {
    with_veth([&] {
        give("near0", own);
        auto const silent = checked(other_mac);
        ASSERT_FALSE(silent);
        EXPECT_EQ(silent.error().problem, Problem::unavailable);
        EXPECT_EQ(silent.error().detail, "no machine answers for 192.168.77.9 on near0");
    });
}

TEST_F(CheckNeighbour, WithoutAMacNothingIsAsked) {
    with_veth([&] { EXPECT_TRUE(checked({})); });
}

}  // namespace
}  // namespace vfmgr::serve
