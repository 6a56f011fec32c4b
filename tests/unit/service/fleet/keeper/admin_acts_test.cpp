// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/keeper/admin_acts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/fleet/identities/stored.hpp"
#include "tests/unit/service/fleet/small_fleet.hpp"

namespace vfmgr::fleet {
namespace {

using testing::HasSubstr;

constexpr auto named = "02:00:00:00:00:41";

Identities macs(std::string const& range) {
    Identities all;
    all.macs = {Range<MacAddress>::parse(range).value()};
    return all;
}

FleetClaimRequest claim(std::string const& mac, std::string const& host) {
    FleetClaimRequest request;
    request.mac = MacAddress::parse(mac).value();
    request.host = host;
    return request;
}

struct AdminActs : testing::Test {
    SmallFleet fleet;

    void SetUp() override {
        for (auto const* const name : {"h1", "h2"}) {
            HostRecord record;
            record.url = "https://h:1";
            record.public_key = std::string("key of ") + name;
            record.state = FleetHostState::active;
            fleet.cluster.put(keys::of(keys::hosts, name), record_text(record));
        }
    }
    // Writes what was decided, if anything was.
    void change(Result<std::optional<GuardedTransaction>> const& decided) {
        ASSERT_TRUE(decided) << decided.error().detail;
        ASSERT_TRUE(*decided);
        EXPECT_TRUE(fleet.commit((*decided)->transaction));
    }
    void give(std::string const& range) {
        change(put_ranges(fleet.state(), macs(range), fleet.by("a")));
    }
    void grant(std::string const& host) {
        auto const state = fleet.state();
        auto const block = grant_block(state, snapshot_of(state), {IdentityKind::mac, "", host},
                                       {fleet.by("a").act, fleet.now});
        ASSERT_TRUE(block);
        EXPECT_TRUE(fleet.commit(block->transaction));
    }
    [[nodiscard]] auto claims(FleetClaimRequest const& request, HeldByHost const& held = {}) {
        return claim_for_host(fleet.state(), held, request, fleet.by("a"));
    }
};

TEST_F(AdminActs, RangesKeepTheBlocksThatHostsHave) {
    give("02:00:00:00:00:00-02:00:00:00:00:3f");
    grant("h1");
    auto const less =
        put_ranges(fleet.state(), macs("02:00:00:00:01:00-02:00:00:00:01:ff"), fleet.by("a"));
    ASSERT_FALSE(less);
    EXPECT_EQ(less.error().problem, Problem::conflict);
    EXPECT_THAT(less.error().detail, HasSubstr("h1 has MAC 02:00:00:00:00:00-02:00:00:00:00:3f"));
    give("02:00:00:00:00:00-02:00:00:00:01:ff");
    EXPECT_FALSE(put_ranges(fleet.state(), ranges_of(fleet.state()).ranges, fleet.by("a")).value());
}

TEST_F(AdminActs, AClaimIsOneHosts) {
    EXPECT_EQ(claims(claim(named, "h1")).error().problem, Problem::conflict) << "no ranges yet";
    give("02:00:00:00:00:00-02:00:00:00:00:ff");
    EXPECT_EQ(claims(claim(named, "h9")).error().problem, Problem::not_found);
    change(claims(claim(named, "h1")));
    EXPECT_FALSE(claims(claim(named, "h1")).value()) << "it is there";
    EXPECT_THAT(claims(claim(named, "h2")).error().detail, HasSubstr("is claimed by h1 since"));
    HeldByHost held;
    held["h2"].push_back(
        {identity_of(claim("06:00:00:00:00:01", "h1")), "vm7", "uuid", "0123abcd", {}});
    EXPECT_THAT(claims(claim("06:00:00:00:00:01", "h1"), held).error().detail,
                HasSubstr("is in use by VM vm7 on h2"));
}

TEST_F(AdminActs, AClaimInAnotherHostsBlockIsRefused) {
    give("02:00:00:00:00:00-02:00:00:00:00:3f");
    grant("h1");
    auto const inside = "02:00:00:00:00:05";
    EXPECT_THAT(claims(claim(inside, "h2")).error().detail, HasSubstr("is in a block of h1"));
    change(claims(claim(inside, "h1")));
    auto const document = desired_identities(snapshot_of(fleet.state()), "h1");
    EXPECT_EQ(document.claims.macs.size(), 1U) << "chosen for nobody";
}

// A leader cuts the block at the same moment, for another host: one of the two fails.
TEST_F(AdminActs, AClaimAndABlockThatAreMadeAtOnceExcludeEachOther) {
    give("02:00:00:00:00:40-02:00:00:00:00:7f");
    auto const before = claims(claim(named, "h1"));
    ASSERT_TRUE(before && *before);
    grant("h2");
    EXPECT_FALSE(fleet.commit((*before)->transaction));
    EXPECT_THAT(claims(claim(named, "h1")).error().detail, HasSubstr("is in a block of h2"));
}

TEST_F(AdminActs, WhatIsReleasedIsNobodysWhenTheHostHasGivenItUp) {
    give("02:00:00:00:00:00-02:00:00:00:00:ff");
    auto const identity = identity_of(claim(named, "h1"));
    EXPECT_EQ(release_claim(fleet.state(), identity, fleet.by("a")).error().problem,
              Problem::not_found);
    change(claims(claim(named, "h1")));
    change(release_claim(fleet.state(), identity, fleet.by("a")));
    EXPECT_FALSE(release_claim(fleet.state(), identity, fleet.by("a")).value()) << "under way";
    EXPECT_THAT(claims(claim(named, "h2")).error().detail, HasSubstr("is on its way from h1"));
    auto const now = snapshot_of(fleet.state());
    EXPECT_FALSE(may_use(desired_identities(now, "h1"), identity));
    MoveAct const act{"act", fleet.now};
    auto const noted = note_given_up(now, identity, Acknowledged{"h1", now.revision}, act);
    ASSERT_TRUE(noted) << noted.error().detail;
    auto const erased = transaction_of(*noted, act);
    EXPECT_EQ(erased.act, "") << "nothing is written that could have it";
    EXPECT_TRUE(fleet.commit(erased.transaction));
    EXPECT_TRUE(snapshot_of(fleet.state()).claims.empty());
    change(claims(claim(named, "h2")));
}

TEST_F(AdminActs, AHostThatLeavesGivesUpWhatIsNotInUse) {
    give("02:00:00:00:00:00-02:00:00:00:00:3f");
    grant("h1");
    change(claims(claim("06:00:00:00:00:01", "h1")));
    EXPECT_EQ(held_by_host(fleet.state(), "h1"), 2U);
    EXPECT_FALSE(expel_host(fleet.state(), "h1"));
    HeldByHost held;
    held["h1"].push_back(
        {identity_of(claim("02:00:00:00:00:01", "h1")), "vm7", "uuid", "0123abcd", {}});
    auto const used = begin_leaving(fleet.state(), held, "h1", fleet.by("a"));
    EXPECT_THAT(used.error().detail, HasSubstr("VM vm7 has MAC 02:00:00:00:00:01"));
    EXPECT_FALSE(free_of_host(fleet.state(), "h1")) << "nobody said that it leaves";
    change(begin_leaving(fleet.state(), {}, "h1", fleet.by("a")));
    auto const state = fleet.state();
    auto const& host = *find_record(state.hosts, "h1");
    Identities document;
    document.generation = static_cast<std::uint64_t>(host.mod_revision) - 1;
    EXPECT_FALSE(gave_up_all(host, nullptr));
    EXPECT_FALSE(gave_up_all(host, &document)) << "an answer to an older document";
    document.generation = static_cast<std::uint64_t>(host.mod_revision);
    EXPECT_TRUE(gave_up_all(host, &document));
    document.macs = macs("02:00:00:00:00:00-02:00:00:00:00:3f").macs;
    EXPECT_FALSE(gave_up_all(host, &document));
    auto const freed = free_of_host(state, "h1");
    ASSERT_TRUE(freed);
    EXPECT_TRUE(fleet.commit(freed->transaction));
    EXPECT_EQ(held_by_host(fleet.state(), "h1"), 0U);
    fleet.change(expel_host(fleet.state(), "h1"));
}

TEST_F(AdminActs, WhatAFencedHostHadIsFreedInPartsThatFit) {
    give("02:00:00:00:00:00-02:00:00:00:ff:ff");
    constexpr int blocks = 200;
    for (int i = 0; i < blocks; ++i) grant("h1");
    fleet.change(fence_host(fleet.state(), "h1", {"its power is off"}, fleet.by("a")));
    HeldByHost held;
    held["h1"].push_back(
        {identity_of(claim("02:00:00:00:00:01", "h1")), "vm7", "uuid", "0123abcd", {}});
    change(begin_leaving(fleet.state(), held, "h1", fleet.by("a")));
    EXPECT_TRUE(gave_up_all(*find_record(fleet.state().hosts, "h1"), nullptr));
    int parts = 0;
    for (auto state = fleet.state(); auto part = free_of_host(state, "h1"); state = fleet.state()) {
        EXPECT_TRUE(check(part->transaction));
        ASSERT_TRUE(fleet.commit(part->transaction));
        ++parts;
    }
    EXPECT_EQ(parts, 2);
    EXPECT_EQ(held_by_host(fleet.state(), "h1"), 0U);
}

}  // namespace
}  // namespace vfmgr::fleet
