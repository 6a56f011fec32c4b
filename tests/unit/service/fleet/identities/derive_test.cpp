// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/derive.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/fleet/identities/holders.hpp"
#include "tests/unit/service/fleet/identities/fleet_snapshot.hpp"

namespace vfmgr::fleet {
namespace {

using test::address;
using test::guid;
using test::mac;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void add_claim(Snapshot& fleet, Identity const& identity, ClaimState state, std::string const& host,
               std::string const& from) {
    fleet.claims.push_back(
        {{identity, state, host, from, "vm", "act", {}, "key of " + host, "key of " + from},
         ++fleet.revision});
}

Snapshot two_hosts() {
    Snapshot fleet;
    test::add_block(fleet, mac("52:54:00:00:00:40"), mac("52:54:00:00:00:7f"), "a");
    test::add_block(fleet, mac("52:54:00:00:00:00"), mac("52:54:00:00:00:3f"), "a");
    test::add_block(fleet, mac("52:54:00:00:00:80"), mac("52:54:00:00:00:bf"), "b");
    test::add_block(fleet, address("10.0.0.16"), address("10.0.0.31"), "a");
    test::add_block(fleet, guid("02:00:00:00:00:00:00:00"), guid("02:00:00:00:00:00:00:3f"), "b");
    return fleet;
}

TEST(DesiredIdentities, AreBlocksAndClaimsWithoutWhatOthersClaim) {
    auto fleet = two_hosts();
    add_claim(fleet, mac("52:54:00:00:00:41"), ClaimState::held, "b", "a");
    add_claim(fleet, mac("52:54:00:00:00:42"), ClaimState::giving_up, "b", "a");
    add_claim(fleet, address("10.0.0.20"), ClaimState::given_up, "b", "a");
    add_claim(fleet, address("10.0.0.99"), ClaimState::held, "b", "");
    auto const a = desired_identities(fleet, "a");
    EXPECT_EQ(a.generation, fleet.revision);
    ASSERT_EQ(a.macs.size(), 1U) << "neighbours are one range";
    EXPECT_EQ(to_string(a.macs[0]), "52:54:00:00:00:00-52:54:00:00:00:7f");
    EXPECT_EQ(a.given_up.macs.size(), 2U);
    ASSERT_EQ(a.given_up.addresses.size(), 1U);
    EXPECT_EQ(a.claims, IdentityList{});
    auto const b = desired_identities(fleet, "b");
    ASSERT_EQ(b.claims.macs.size(), 1U);
    EXPECT_EQ(b.claims.macs[0], std::get<MacAddress>(mac("52:54:00:00:00:41").value));
    EXPECT_EQ(
        b.claims.addresses,
        (std::vector<NetworkAddress>{{"train", std::get<IpAddress>(address("10.0.0.99").value)}}));
    EXPECT_EQ(b.guids.size(), 1U);
    EXPECT_EQ(b.given_up, IdentityList{});
    for (auto const& kept : fleet.claims)
        EXPECT_FALSE(may_use(a, kept.claim.identity)) << described(kept.claim.identity);
    EXPECT_TRUE(may_use(a, mac("52:54:00:00:00:43")));
    EXPECT_TRUE(may_use(b, mac("52:54:00:00:00:41")));
    EXPECT_FALSE(may_use(b, mac("52:54:00:00:00:42")));
    EXPECT_TRUE(may_use(b, guid("02:00:00:00:00:00:00:3f")));
    EXPECT_FALSE(may_use(a, Identity{"other", IpAddress::parse("10.0.0.17").value()}));
}

TEST(IdentityDifference, SaysWhatAPushChanges) {
    auto fleet = two_hosts();
    auto const before = desired_identities(fleet, "a");
    EXPECT_EQ(difference(before, before, *before.generation).generation, Generation::current);
    add_claim(fleet, mac("52:54:00:00:00:41"), ClaimState::giving_up, "b", "a");
    test::add_block(fleet, mac("52:54:00:00:01:00"), mac("52:54:00:00:01:3f"), "a");
    auto const after = desired_identities(fleet, "a");
    auto const change = difference(after, before, *before.generation);
    EXPECT_TRUE(change.pushes());
    EXPECT_THAT(change.sentences,
                ElementsAre("MACs 52:54:00:00:01:00-52:54:00:00:01:3f are to become the host's",
                            "MAC 52:54:00:00:00:41 is to be given up"));
    EXPECT_TRUE(difference(before, after, 0).quarantines()) << "etcd was restored";
    EXPECT_EQ(difference(after, before, *after.generation).generation, Generation::altered)
        << "the host's store was restored: it acknowledged more";
    auto same_generation = before;
    same_generation.generation = after.generation;
    EXPECT_EQ(difference(after, same_generation, 0).generation, Generation::altered);
    add_claim(fleet, address("10.9.9.9"), ClaimState::held, "c", "");
    EXPECT_EQ(difference(desired_identities(fleet, "a"), after, 0).generation, Generation::current)
        << "another host's change needs no push";
    auto own = before;
    own.generation.reset();
    EXPECT_TRUE(difference(before, own, 0).pushes()) << "they were never the fleet's";
    EXPECT_TRUE(difference(before, own, 7).quarantines()) << "and it has acknowledged some";
}

HeldIdentity held(Identity const& identity, std::string const& vm) {
    return {identity, vm, "uuid", "0123abcd", std::nullopt};
}

TEST(IdentityFindings, AreWhatTwoHostsHave) {
    auto const fleet = two_hosts();
    auto const one = mac("52:54:00:00:00:41");
    EXPECT_THAT(findings(fleet, {{"a", {held(one, "vm1")}}}), IsEmpty());
    auto const found = findings(fleet, {{"a", {held(one, "vm1")}}, {"b", {held(one, "vm2")}}});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, FindingKind::contested);
    EXPECT_THAT(found[0].hosts, ElementsAre("a", "b"));
    EXPECT_EQ(found[0].owner, "a");
    EXPECT_EQ(
        found[0].sentence,
        "MAC 52:54:00:00:00:41 is held by VM vm1 on a and VM vm2 on b; it is in a block of a");
}

TEST(IdentityFindings, AreWhatBelongsToAnotherOrNobody) {
    auto fleet = two_hosts();
    add_claim(fleet, mac("52:54:00:00:00:41"), ClaimState::given_up, "b", "a");
    add_claim(fleet, mac("52:54:00:00:00:42"), ClaimState::giving_up, "b", "a");
    auto const found = findings(
        fleet, {{"a",
                 {held(mac("52:54:00:00:00:41"), "vm1"), held(mac("52:54:00:00:00:42"), "vm2"),
                  held(mac("52:54:00:00:00:80"), "vm3"), held(mac("52:54:00:00:09:00"), "vm4")}}});
    ASSERT_EQ(found.size(), 3U) << "what is being given up may be in use until it is";
    EXPECT_THAT(found[0].sentence, HasSubstr("a has given it up for b"));
    EXPECT_EQ(found[0].kind, FindingKind::contested);
    EXPECT_THAT(found[1].sentence, HasSubstr("it is in a block of b"));
    EXPECT_EQ(found[1].owner, "b");
    EXPECT_EQ(found[2].kind, FindingKind::foreign);
    EXPECT_EQ(found[2].owner, "");
}

TEST(Holders, AreOneRowForEachThatIsUsedOrClaimed) {
    auto fleet = two_hosts();
    auto const claimed = mac("52:54:00:00:00:41");
    auto const leaving = mac("52:54:00:00:00:42");
    add_claim(fleet, claimed, ClaimState::held, "b", "a");
    add_claim(fleet, leaving, ClaimState::giving_up, "b", "a");
    add_claim(fleet, address("10.0.0.20"), ClaimState::given_up, "b", "a");
    add_claim(fleet, address("10.0.0.21"), ClaimState::held, "b", "a");
    auto const rows = holders(fleet, {{"a",
                                       {held(mac("52:54:00:00:00:00"), "vm0"), held(leaving, "vm2"),
                                        held(mac("52:54:00:00:09:00"), "vm4")}},
                                      {"b", {held(claimed, "vm1")}}});
    auto const row = [&](Identity const& identity) {
        return *std::ranges::find(rows, identity, &Holder::identity);
    };
    EXPECT_EQ(rows.size(), 6U);
    auto const own = row(mac("52:54:00:00:00:00"));
    EXPECT_EQ(std::tie(own.host, own.source, own.state, own.vm),
              std::tuple("a", HolderSource::block, HolderState::held, "vm0"));
    EXPECT_EQ(own.certificate, "key of a");
    EXPECT_EQ(row(claimed).source, HolderSource::claim);
    EXPECT_EQ(row(claimed).certificate, "key of b");
    EXPECT_EQ(row(leaving).state, HolderState::giving_up);
    EXPECT_EQ(row(leaving).certificate, "key of a");
    EXPECT_EQ(row(address("10.0.0.20")).state, HolderState::given_up);
    EXPECT_EQ(row(address("10.0.0.21")).state, HolderState::reserved);
    EXPECT_EQ(row(mac("52:54:00:00:09:00")).state, HolderState::foreign);
    EXPECT_EQ(row(mac("52:54:00:00:09:00")).source, HolderSource::none);
}

}  // namespace
}  // namespace vfmgr::fleet
