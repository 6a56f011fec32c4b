// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/state.hpp"

#include <gtest/gtest.h>

namespace vfmgr::fleet {
namespace {

KeyChange put(std::string const& key, std::string const& value, Revision revision) {
    return {key, KeyValue{key, value, revision, revision, 0}, revision};
}

std::string claim_of(std::string const& host) {
    ClaimRecord record;
    record.host = host;
    record.act = "act";
    return record_text(record);
}

TEST(State, HasWhatEtcdHas) {
    auto state = with_changes({}, {put("claims/mac/02:00:00:00:00:01", claim_of("h1"), 5)});
    auto const* const claim = find_record(state.claims, "mac/02:00:00:00:00:01");
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->record.host, "h1");
    EXPECT_EQ(claim->mod_revision, 5);
    state = with_changes(state, {KeyChange{"claims/mac/02:00:00:00:00:01", {}, 6}});
    EXPECT_TRUE(state.claims->empty());
}

TEST(State, ACopyKeepsWhatItHad) {
    auto const before = with_changes({}, {put("claims/mac/a", claim_of("h1"), 1)});
    auto const after = with_changes(
        before, {put("claims/mac/a", claim_of("h2"), 2), put("claims/mac/b", claim_of("h3"), 2)});
    EXPECT_EQ(find_record(before.claims, "mac/a")->record.host, "h1");
    EXPECT_EQ(before.claims->size(), 1U);
    EXPECT_EQ(find_record(after.claims, "mac/a")->record.host, "h2");
    EXPECT_EQ(after.claims->size(), 2U);
    EXPECT_EQ(before.hosts, after.hosts) << "a table without changes is shared";
}

TEST(State, NamesWhatItCannotRead) {
    auto state = with_changes({}, {put("hosts/h1", "no JSON", 1), put("fleet", "{}", 1)});
    EXPECT_EQ(state.unreadable.size(), 2U);
    EXPECT_TRUE(state.hosts->empty());
    EXPECT_FALSE(state.fleet);
    state = with_changes(state, {KeyChange{"hosts/h1", {}, 2}});
    EXPECT_EQ(state.unreadable.size(), 1U);
}

TEST(State, LeavesKeysOfANewerVersionAlone) {
    auto const state = with_changes({}, {put("tunnels/t1", "{}", 1)});
    EXPECT_TRUE(state.unreadable.empty());
}

}  // namespace
}  // namespace vfmgr::fleet
