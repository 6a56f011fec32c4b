// SPDX-License-Identifier: Apache-2.0
// What a leader does with hosts' identities: however it, etcd or a host fails meanwhile, hosts end
// up with what etcd says, and no two of them with the same.
#include "service/fleet/keeper/keeper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/service/fleet/keeper/keeper_world.hpp"

namespace vfmgr::fleet {
namespace {

using test::Leader;
using test::World;
using testing::HasSubstr;
using testing::IsEmpty;

Identity mac(std::string const& text) {
    return {"", MacAddress::parse(text).value()};
}
// The n-th MAC that the host may hand out.
std::string nth(test::FakeHost const& host, std::uint8_t n) {
    auto first = host.has.macs.at(0).first;
    first.octets[5] = static_cast<std::uint8_t>(first.octets[5] + n);
    return to_string(first);
}

TEST(Keeper, GivesEachHostBlocksAndPushesThem) {
    World world;
    world.join("h1");
    world.join("h2").vfs = 100;
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    EXPECT_EQ(world.blocks_of("h1"), 1U);
    EXPECT_EQ(world.blocks_of("h2"), 2U) << "100 VFs, and a quarter of a block to spare";
    for (auto const& [name, host] : world.hosts) {
        ASSERT_TRUE(host.has.generation) << name;
        EXPECT_EQ(host.puts, 1) << "blocks come before the first push";
        EXPECT_EQ(world.marked(name), host.has.generation) << name;
    }
    EXPECT_THAT(leader.keeper.problems(), IsEmpty());
}

TEST(Keeper, DoesNothingWithoutRangesOrLeadership) {
    World world;
    world.join("h1");
    Leader leader(world);
    leader.settle();
    EXPECT_EQ(world.blocks_of("h1"), 0U);
    world.cluster.erase("identities");
    world.elect(leader);
    leader.settle();
    EXPECT_EQ(world.hosts.at("h1").reads + world.hosts.at("h1").puts, 0)
        << "the host chooses by itself until the fleet has ranges";
}

TEST(Keeper, RefillsBeforeAHostRunsOut) {
    World world;
    auto& host = world.join("h1");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    host.vfs = 60;
    for (std::uint8_t i = 0; i < 50; ++i) {
        host.in_use.emplace("0000000" + std::to_string(i), mac(nth(host, i)));
        leader.settle();
        std::size_t const has = world.blocks_of("h1") * 64;
        EXPECT_GE(has - host.in_use.size(), 60U - host.in_use.size() + 16U) << int{i};
    }
    EXPECT_EQ(world.blocks_of("h1"), 2U);
}

TEST(Keeper, SaysOnceThatTheRangesAreUsedUp) {
    World world;
    world.give("02:00:00:00:00:00-02:00:00:00:00:3f");
    world.join("h1");
    world.join("h2");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    EXPECT_EQ(world.blocks_of("h1") + world.blocks_of("h2"), 1U);
    auto const problems = leader.keeper.problems();
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_THAT(problems[0], HasSubstr("have no more MACs for host"));
    for (auto const& [name, host] : world.hosts)
        EXPECT_TRUE(host.has.generation) << name << " hands out nothing that is another's";
    world.give("02:00:00:00:00:00-02:00:00:00:00:ff");
    leader.settle();
    EXPECT_EQ(world.blocks_of("h1") + world.blocks_of("h2"), 2U);
    EXPECT_THAT(leader.keeper.problems(), IsEmpty());
}

// At each write to etcd the replica dies, once before and once after it is done; the next one goes
// on, and the end is the same.
TEST(Keeper, ALeaderThatDiesAtAnyWriteIsReplaced) {
    bool all_done = false;
    for (std::size_t n = 0; !all_done; ++n) {
        ASSERT_LT(n, 100U);
        for (auto const point : {FaultPoint::before, FaultPoint::after}) {
            World world;
            world.join("h1");
            world.join("h2").vfs = 100;
            world.claim("02:00:00:00:77:01", ClaimState::giving_up, "h2", "h1");
            Leader first(world);
            world.elect(first);
            first.writes.die_at({n, point});
            try {
                first.settle();
                all_done = true;
            } catch (CrashNow const&) {
                all_done = false;
            }
            Leader second(world);
            world.elect(second);
            second.settle();
            EXPECT_EQ(world.blocks_of("h1"), 1U) << n;
            EXPECT_EQ(world.blocks_of("h2"), 2U) << n;
            EXPECT_EQ(world.claim_of_mac("02:00:00:00:77:01")->state, ClaimState::given_up) << n;
            for (auto const& [name, host] : world.hosts)
                EXPECT_EQ(world.marked(name), host.has.generation) << name << n;
            EXPECT_THAT(world.quarantined, IsEmpty()) << n;
        }
    }
}

TEST(Keeper, AnOldLeaderChangesNothing) {
    World world;
    auto& host = world.join("h1");
    Leader old(world);
    world.elect(old);
    old.settle();
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    auto const keys = world.cluster.keys();
    auto const has = host.has;
    // It does not know yet that it leads no more.
    host.vfs = 200;
    old.settle();
    EXPECT_EQ(world.cluster.keys(), keys);
    EXPECT_EQ(host.has, has);
    leader.settle();
    EXPECT_GT(world.blocks_of("h1"), 1U);
}

TEST(Keeper, AnAnswerThatWasLostIsReadAgain) {
    World world;
    auto& host = world.join("h1");
    Leader leader(world);
    world.elect(leader);
    host.loses_answer = true;
    leader.writes.fail_commits({CommitFault::lost_after, CommitFault::lost_before});
    leader.settle();
    EXPECT_EQ(host.puts, 1);
    EXPECT_EQ(world.blocks_of("h1"), 1U);
    Leader next(world);
    world.elect(next);
    next.settle();
    EXPECT_EQ(world.marked("h1"), host.has.generation);
    EXPECT_EQ(host.puts, 1) << "it has it already";
}

TEST(Keeper, WhatIsInUseIsGivenUpLater) {
    World world;
    auto& host = world.join("h1");
    world.join("h2");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    auto const moving = nth(host, 3);
    host.in_use.emplace("00000003", mac(moving));
    world.claim(moving, ClaimState::giving_up, "h2", "h1");
    leader.settle();
    EXPECT_EQ(world.claim_of_mac(moving)->state, ClaimState::giving_up);
    ASSERT_EQ(leader.keeper.problems().size(), 1U);
    EXPECT_THAT(leader.keeper.problems()[0], HasSubstr("can't be taken away"));
    host.in_use.clear();
    leader.settle();
    EXPECT_EQ(world.claim_of_mac(moving)->state, ClaimState::given_up);
    EXPECT_FALSE(may_use(host.has, mac(moving)));
    EXPECT_THAT(leader.keeper.problems(), IsEmpty());
    EXPECT_THAT(world.quarantined, IsEmpty());
}

// The move is aborted and begun again before the host is asked: it answers to the new one.
TEST(Keeper, AnOldAnswerIsNoneToANewQuestion) {
    World world;
    auto& host = world.join("h1");
    world.join("h2");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    auto const moving = nth(host, 3);
    world.claim(moving, ClaimState::giving_up, "h2", "h1");
    leader.settle();
    world.claim(moving, ClaimState::giving_up, "h2", "h1");
    leader.settle();
    EXPECT_EQ(world.claim_of_mac(moving)->state, ClaimState::given_up);
}

TEST(Keeper, AFencedHostHasGivenUpWhatItIsTo) {
    World world;
    auto& host = world.join("h1");
    world.join("h2");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    auto const moving = nth(host, 3);
    host.silent = true;
    world.claim(moving, ClaimState::giving_up, "h2", "h1");
    leader.turn();
    EXPECT_EQ(world.claim_of_mac(moving)->state, ClaimState::giving_up) << "silence frees nothing";
    auto const record = world.cluster.keys().at("hosts/h1");
    auto fenced = read_record<HostRecord>(record.value).value();
    fenced.fenced = Statement{{}, "admin", "its power is off"};
    world.cluster.put("hosts/h1", record_text(fenced));
    leader.settle();
    EXPECT_EQ(world.claim_of_mac(moving)->state, ClaimState::given_up);
}

TEST(Keeper, ASilentHostHoldsUpNoOther) {
    World world;
    for (int i = 0; i < 40; ++i) world.join("a" + std::to_string(i)).silent = i < 20;
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    for (auto const& [name, host] : world.hosts)
        EXPECT_EQ(host.has.generation.has_value(), !host.silent) << name;
}

TEST(Keeper, WhatAnothersHostHasIsQuarantined) {
    World world;
    auto& one = world.join("h1");
    auto& other = world.join("h2");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    other.in_use.emplace("0000000a", mac(nth(one, 5)));
    leader.settle();
    EXPECT_EQ(world.state_of("h1"), FleetHostState::active);
    EXPECT_EQ(world.state_of("h2"), FleetHostState::quarantined);
    EXPECT_THAT(world.quarantined.at("h2"), HasSubstr("is held by VM vm-0000000a on h2; it is in "
                                                      "a block of h1"));
    auto const puts = other.puts;
    one.vfs = 200;
    other.vfs = 200;
    leader.settle();
    EXPECT_EQ(other.puts, puts) << "nothing new goes there";
    EXPECT_GT(one.puts, 1);
}

// The inventory still shows what was detached: the host itself says that it is not so.
TEST(Keeper, AnOldPictureQuarantinesNobody) {
    World world;
    auto& one = world.join("h1");
    auto& other = world.join("h2");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    other.in_use.emplace("0000000a", mac(nth(one, 5)));
    world.observe();
    other.in_use.clear();
    leader.keeper.turn();
    leader.keeper.turn();
    EXPECT_EQ(world.state_of("h2"), FleetHostState::active);
}

TEST(Keeper, AMacOfNobodyIsContestedByTwo) {
    World world;
    world.join("h1").in_use.emplace("0000000a", mac("06:00:00:00:00:01"));
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    EXPECT_THAT(world.quarantined, IsEmpty()) << "from before it joined";
    world.join("h2").in_use.emplace("0000000b", mac("06:00:00:00:00:01"));
    leader.settle();
    EXPECT_EQ(world.quarantined.size(), 2U);
}

TEST(Keeper, AClaimThatIsReleasedGoes) {
    World world;
    auto& host = world.join("h1");
    auto const given = "06:00:00:00:00:01";
    world.claim(given, ClaimState::held, "h1", "");
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    EXPECT_TRUE(may_use(host.has, mac(given)));
    world.claim(given, ClaimState::giving_up, "", "h1");
    leader.settle();
    EXPECT_FALSE(may_use(host.has, mac(given)));
    EXPECT_FALSE(world.claim_of_mac(given));
}

TEST(Keeper, AHostThatLeavesGivesUpAllOfIt) {
    World world;
    auto& host = world.join("h1");
    host.vfs = 100;
    Leader leader(world);
    world.elect(leader);
    leader.settle();
    auto const key = world.cluster.keys().at("hosts/h1");
    auto record = read_record<HostRecord>(key.value).value();
    record.leaving = Statement{{}, "admin", "expelled"};
    world.cluster.put("hosts/h1", record_text(record));
    leader.settle();
    EXPECT_EQ(world.blocks_of("h1"), 0U);
    EXPECT_TRUE(host.has.macs.empty());
    EXPECT_TRUE(host.has.generation);
}

TEST(Keeper, AStoreThatIsOlderThanConfirmedIsQuarantined) {
    World world;
    auto& host = world.join("h1");
    auto const before = host;
    Leader first(world);
    world.elect(first);
    first.settle();
    auto const confirmed = *host.has.generation;
    host = before;
    // The next leader knows by the mark alone.
    Leader second(world);
    world.elect(second);
    second.settle();
    EXPECT_EQ(world.state_of("h1"), FleetHostState::quarantined);
    EXPECT_THAT(world.quarantined.at("h1"),
                HasSubstr("it has confirmed " + std::to_string(confirmed)));
    EXPECT_EQ(host.puts, 0);
}

TEST(Keeper, AHostThatIsAheadOfEtcdIsQuarantined) {
    World world;
    auto& host = world.join("h1");
    auto const backup = world.cluster.contents();
    for (int i = 0; i < 50; ++i) world.cluster.put("other", "makes revisions");
    Leader first(world);
    world.elect(first);
    first.settle();
    world.cluster.restore(backup);
    Leader second(world);
    world.elect(second);
    second.settle();
    EXPECT_EQ(world.state_of("h1"), FleetHostState::quarantined);
    EXPECT_THAT(world.quarantined.at("h1"), HasSubstr("etcd was restored"));
    EXPECT_EQ(host.puts, 1);
}

}  // namespace
}  // namespace vfmgr::fleet
