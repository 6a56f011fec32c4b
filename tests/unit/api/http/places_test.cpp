// SPDX-License-Identifier: Apache-2.0
#include "api/http/places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "api/http/listening.hpp"

namespace vfmgr::http {
namespace {

// A listener's connections as peers come and stay, decided by find_place().
struct Door {
    std::vector<Place> taken;
    std::set<std::string> names{};  // their owner
    std::uint64_t so_far = 0;
    Limits limits{};

    // Returns whether the peer got a place.
    bool come(std::string const& peer, bool idle) {
        auto const room = find_place(taken, peer, limits);
        if (!room) return false;
        if (*room) std::erase_if(taken, [&](Place const& one) { return one.number == **room; });
        taken.push_back({*names.insert(peer).first, so_far++, idle});
        EXPECT_LE(taken.size(), limits.connections_max);
        return true;
    }
    [[nodiscard]] std::size_t of(std::string const& peer) const {
        return static_cast<std::size_t>(std::ranges::count(taken, peer, &Place::peer));
    }
};

std::string vm(int number) {
    return "cid:" + std::to_string(number);
}

// Eight VMs times 32 would be all places.
TEST(Places, UnprivilegedProcessesOfEightVmsTakeNone) {
    Door door;
    for (std::uint32_t cid = 3; cid < 11; ++cid)
        for (std::uint32_t port = 1024; port < 1024 + 32; ++port)
            if (check_source(SourcePort::privileged, VsockPeer{cid, port}))
                door.come("cid:" + std::to_string(cid), false);
    EXPECT_TRUE(door.taken.empty());
    EXPECT_EQ(check_source(SourcePort::privileged, VsockPeer{3, 1024}).error().problem,
              Problem::forbidden);
    EXPECT_TRUE(check_source(SourcePort::privileged, VsockPeer{11, 1023}));
    EXPECT_TRUE(door.come(vm(11), false));
    EXPECT_FALSE(check_source(SourcePort::privileged, UnixPeer{}));
    EXPECT_TRUE(check_source(SourcePort::any, VsockPeer{3, 1024}));
}

TEST(Places, WhoHasTheMostGivesOneUp) {
    Door door;
    for (int one = 0; one < 8; ++one)
        for (int i = 0; i < 32; ++i) ASSERT_TRUE(door.come(vm(one), false));
    for (int honest = 8; honest < 64; ++honest) {
        for (int i = 0; i < 4; ++i) EXPECT_TRUE(door.come(vm(honest), false)) << honest;
        EXPECT_EQ(door.of(vm(honest)), 4U);
    }
    EXPECT_EQ(door.taken.size(), 256U);
    for (int greedy = 0; greedy < 8; ++greedy) EXPECT_EQ(door.of(vm(greedy)), 4U);
    // All have the same number: no peer takes another's place.
    EXPECT_FALSE(door.come(vm(0), false));
    EXPECT_FALSE(door.come(vm(63), false));
}

TEST(Places, OneAskerHasItsShareAndNoMore) {
    Door door;
    for (int i = 0; i < 32; ++i) ASSERT_TRUE(door.come(vm(3), false));
    auto const refused = find_place(door.taken, vm(3), Limits{});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_NE(refused.error().detail.find("cid:3"), std::string::npos);
    EXPECT_TRUE(door.come(vm(4), false));
}

TEST(Places, TheOldestIdleOneGoesFirst) {
    Door door;
    ASSERT_TRUE(door.come(vm(3), false));
    for (int i = 0; i < 31; ++i) ASSERT_TRUE(door.come(vm(3), true));
    EXPECT_EQ(find_place(door.taken, vm(3), Limits{}).value(), std::optional<std::uint64_t>(1));
    // Another peer's, too, though a busy one is older; never one of a peer with no more than its
    // own.
    door.limits.connections_max = 33;
    ASSERT_TRUE(door.come(vm(4), true));
    EXPECT_EQ(find_place(door.taken, vm(5), door.limits).value(), std::optional<std::uint64_t>(1));
}

TEST(Places, NoneIsTakenWhileThereIsRoom) {
    Door door;
    for (int i = 0; i < 31; ++i) ASSERT_TRUE(door.come(vm(3), true));
    EXPECT_EQ(find_place(door.taken, vm(3), Limits{}).value(), std::optional<std::uint64_t>());
    EXPECT_EQ(find_place({}, vm(3), Limits{}).value(), std::optional<std::uint64_t>());
}

TEST(KnownPeers, TheLastKnownAreKept) {
    KnownPeers known(2);
    known.remember("a");
    known.remember("b");
    known.remember("a");
    known.remember("c");
    EXPECT_TRUE(known.contains("a"));
    EXPECT_FALSE(known.contains("b"));
    EXPECT_TRUE(known.contains("c"));
}

using Ends = std::optional<std::uint64_t>;
using enum AddressIs;

Strangers strangers_from(std::string_view addresses, AddressIs is = unknown) {
    Strangers all;
    std::uint64_t number = 1;
    for (char const address : addresses) all.add(std::string(1, address), is, number++);
    return all;
}

TEST(Strangers, GetInAndTheOldestOfWhoHasTooManyGoes) {
    Limits limits;
    limits.connections_max = 12;
    limits.strangers_per_peer_max = 2;
    auto const few = strangers_from("baa");
    EXPECT_EQ(few.find_place("a", unknown, limits).value(), Ends(2)) << "its share";
    EXPECT_EQ(few.find_place("b", unknown, limits).value(), Ends());
    // Half of twelve: the oldest of the address with the most.
    auto const full = strangers_from("bcadea");
    EXPECT_EQ(full.find_place("f", unknown, limits).value(), Ends(3));
    EXPECT_EQ(full.find_place("b", unknown, limits).value(), Ends(3));
    EXPECT_EQ(strangers_from("bcadef").find_place("g", unknown, limits).value(), Ends(1))
        << "of all";
    limits.connections_max = 0;
    EXPECT_EQ(Strangers().find_place("a", unknown, limits).error().problem, Problem::unavailable);
}

TEST(Strangers, OfKnownAddressesHavePlacesOfTheirOwn) {
    Limits limits;
    limits.connections_max = 12;
    limits.strangers_per_peer_max = 2;
    auto all = strangers_from("abcdef");
    EXPECT_EQ(all.find_place("k", known, limits).value(), Ends());
    for (std::uint64_t number = 7; number < 13; ++number) all.add("k", known, number);
    EXPECT_EQ(all.find_place("k", known, limits).value(), Ends(7)) << "no limit but all";
    EXPECT_EQ(all.find_place("l", known, limits).value(), Ends(7));
    EXPECT_EQ(all.find_place("g", unknown, limits).value(), Ends(1)) << "though k has more";
}

TEST(Strangers, WhoLeavesMakesRoom) {
    Limits limits;
    limits.connections_max = 4;
    auto all = strangers_from("aab");
    all.remove(3);
    EXPECT_EQ(all.find_place("b", unknown, limits).value(), Ends(1));
    all.remove(1);
    all.remove(1);
    EXPECT_EQ(all.find_place("b", unknown, limits).value(), Ends());
    EXPECT_TRUE(all.contains(2));
    EXPECT_FALSE(all.contains(1));
}

TEST(Strangers, AreCountedByTheNetworkThatOneHostMayHave) {
    EXPECT_EQ(stranger_key(TcpPeer{"192.0.2.9"}), "192.0.2.9");
    EXPECT_EQ(stranger_key(TcpPeer{"2001:db8:1:2:3::4"}), "2001:db8:1:2::/64");
    EXPECT_EQ(stranger_key(TcpPeer{"2001:db8:1:2::5"}), stranger_key(TcpPeer{"2001:db8:1:2::6"}));
}

}  // namespace
}  // namespace vfmgr::http
