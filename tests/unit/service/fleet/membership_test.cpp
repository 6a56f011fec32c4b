// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/membership.hpp"

#include <gtest/gtest.h>

#include "tests/unit/service/fleet/small_fleet.hpp"

namespace vfmgr::fleet {
namespace {

using namespace std::chrono_literals;

JoinRequest request_of(JoinToken const& token, std::string const& host = "h1") {
    return {to_string(token), host, "https://" + host + ":8470", std::string(64, 'b')};
}

TEST(Membership, AHostJoinsOnceWithAToken) {
    SmallFleet fleet;
    auto const token = fleet.new_token({});
    fleet.join(request_of(token));
    auto const state = fleet.state();
    auto const* const host = find_record(state.hosts, "h1");
    ASSERT_TRUE(host);
    EXPECT_EQ(host->record.number, 1U);
    EXPECT_EQ(host->record.state, FleetHostState::joining);
    EXPECT_EQ(host->record.joined_by, "uid:0");
    EXPECT_TRUE(state.join_tokens->empty());
    // Another host can't use it again.
    auto const again = join(state, request_of(token, "h2"), fleet.now);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().problem, Problem::unauthorized);
}

TEST(Membership, AHostThatLostTheAnswerIsAnsweredAgain) {
    SmallFleet fleet;
    auto const token = fleet.new_token({});
    fleet.join(request_of(token));
    auto const again = join(fleet.state(), request_of(token), fleet.now);
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_TRUE(std::holds_alternative<HasJoined>(*again));
    // Not somebody else with the same token.
    auto other = request_of(token);
    other.public_key = std::string(64, 'c');
    EXPECT_FALSE(join(fleet.state(), other, fleet.now));
}

TEST(Membership, ATokenIsRefusedThatIsWrongExpiredOrAnothersHosts) {
    SmallFleet fleet;
    auto token = fleet.new_token({"h7", 60});
    auto const others = join(fleet.state(), request_of(token, "h1"), fleet.now);
    ASSERT_FALSE(others);
    EXPECT_EQ(others.error().problem, Problem::forbidden);
    auto const late = join(fleet.state(), request_of(token, "h7"), fleet.now + 60s);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().problem, Problem::unauthorized);
    token.secret.front() = token.secret.front() == '0' ? '1' : '0';
    auto const wrong = join(fleet.state(), request_of(token, "h7"), fleet.now);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().problem, Problem::unauthorized);
}

TEST(Membership, ExpiredTokensMakeRoom) {
    SmallFleet fleet;
    auto const late = fleet.new_token({{}, 60});
    auto const valid = fleet.new_token({{}, 3600});
    EXPECT_FALSE(drop_expired_tokens(fleet.state(), fleet.now));
    auto const dropped = drop_expired_tokens(fleet.state(), fleet.now + 60s);
    ASSERT_TRUE(dropped);
    EXPECT_TRUE(fleet.commit(dropped->transaction));
    EXPECT_FALSE(find_record(fleet.state().join_tokens, late.id));
    EXPECT_TRUE(find_record(fleet.state().join_tokens, valid.id));
    EXPECT_FALSE(fleet.commit(dropped->transaction)) << "it is done once";
}

// Two replicas decide from the same state; etcd lets one of them.
TEST(Membership, TwoHostsWithOneTokenAreNotBothIn) {
    SmallFleet fleet;
    auto const token = fleet.new_token({});
    auto const before = fleet.state();
    auto const one = join(before, request_of(token, "h1"), fleet.now);
    auto const other = join(before, request_of(token, "h2"), fleet.now);
    ASSERT_TRUE(one && other);
    EXPECT_TRUE(fleet.commit(std::get<GuardedTransaction>(*one).transaction));
    EXPECT_FALSE(fleet.commit(std::get<GuardedTransaction>(*other).transaction));
}

TEST(Membership, ANumberIsNeverUsedAgain) {
    SmallFleet fleet;
    fleet.join(request_of(fleet.new_token({}), "h1"));
    auto const expelled = expel_host(fleet.state(), "h1");
    ASSERT_TRUE(expelled);
    EXPECT_TRUE(fleet.commit(expelled->transaction));
    fleet.join(request_of(fleet.new_token({}), "h2"));
    EXPECT_EQ(find_record(fleet.state().hosts, "h2")->record.number, 2U);
}

TEST(Membership, ANameIsOneHosts) {
    SmallFleet fleet;
    fleet.join(request_of(fleet.new_token({}), "h1"));
    auto again = request_of(fleet.new_token({}), "h1");
    again.public_key = std::string(64, 'd');
    auto const refused = join(fleet.state(), again, fleet.now);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
}

TEST(Membership, AHostThatStillHasIdentitiesIsNotExpelled) {
    SmallFleet fleet;
    fleet.join(request_of(fleet.new_token({}), "h1"));
    BlockRecord const block{
        "02:00:00:00:00:00", "02:00:00:00:00:3f", "h1", std::string(64, 'b'), "act1", fleet.now};
    EXPECT_TRUE(fleet.commit({{}, {Put{"blocks/mac/02:00:00:00:00:00", record_text(block)}}}));
    auto const refused = expel_host(fleet.state(), "h1");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
}

TEST(Membership, APatchChangesWhatItNames) {
    SmallFleet fleet;
    fleet.join(request_of(fleet.new_token({}), "h1"));
    FleetHostPatch patch;
    patch.rack = "r1";
    patch.cordoned = true;
    patch.reason = "a fan is broken";
    fleet.change(patch_host(fleet.state(), "h1", patch, fleet.by("uid:0")));
    auto record = find_record(fleet.state().hosts, "h1")->record;
    EXPECT_EQ(record.rack, "r1");
    ASSERT_TRUE(record.cordoned);
    EXPECT_EQ(record.cordoned->reason, "a fan is broken");
    fleet.change(patch_host(fleet.state(), "h1", {.labels = {{{"zone", "a"}}}}, fleet.by("uid:0")));
    record = find_record(fleet.state().hosts, "h1")->record;
    EXPECT_TRUE(record.cordoned);
    EXPECT_EQ(record.labels.at("zone"), "a");
    fleet.change(
        patch_host(fleet.state(), "h1", {.rack = "", .cordoned = false}, fleet.by("uid:0")));
    record = find_record(fleet.state().hosts, "h1")->record;
    EXPECT_FALSE(record.rack);
    EXPECT_FALSE(record.cordoned);
}

// A member that a newer replica wrote survives this one's change, and one that this version took
// away does not come back.
TEST(Membership, AChangeKeepsWhatItDoesNotKnow) {
    SmallFleet fleet;
    fleet.join(request_of(fleet.new_token({}), "h1"));
    auto text = find_record(fleet.state().hosts, "h1")->text;
    text.insert(1, R"("power":{"watts":700},"rack":"r1",)");
    EXPECT_TRUE(fleet.commit({{}, {Put{"hosts/h1", text}}}));
    fleet.change(patch_host(fleet.state(), "h1", {.rack = ""}, fleet.by("uid:0")));
    auto const after = find_record(fleet.state().hosts, "h1")->text;
    EXPECT_NE(after.find(R"("power":{"watts":700})"), std::string::npos) << after;
    EXPECT_EQ(after.find("rack"), std::string::npos) << after;
}

TEST(Membership, QuarantineEndsWithAnAdminsWord) {
    SmallFleet fleet;
    fleet.join(request_of(fleet.new_token({}), "h1"));
    fleet.change(activate_host(fleet.state(), "h1", "act1"));
    fleet.change(quarantine_host(fleet.state(), "h1", "its store is older than it was", "act2"));
    EXPECT_EQ(find_record(fleet.state().hosts, "h1")->record.state, FleetHostState::quarantined);
    fleet.change(confirm_host(fleet.state(), "h1", {"store1", 7, {}, 3, {}}, fleet.by("uid:0")));
    EXPECT_EQ(find_record(fleet.state().hosts, "h1")->record.state, FleetHostState::active);
    EXPECT_EQ(find_record(fleet.state().marks, "h1")->record.event, 7U);
}

TEST(Membership, AReplicaDoesNotServeAnotherFleetsPrefix) {
    SmallFleet fleet;
    auto const first = begin_fleet({"f1", "PEM", fleet.now, {}}, "act1");
    EXPECT_TRUE(check_fleet(fleet.state(), "f1", "PEM"));
    EXPECT_TRUE(fleet.commit(first.transaction));
    EXPECT_FALSE(fleet.commit(begin_fleet({"f2", "PEM2", fleet.now, {}}, "act2").transaction));
    EXPECT_TRUE(check_fleet(fleet.state(), "f1", "PEM"));
    EXPECT_EQ(check_fleet(fleet.state(), "f2", "PEM2").error().problem, Problem::conflict);
    EXPECT_TRUE(fleet.commit({{}, {Put{"format", R"({"format":2})"}}}));
    EXPECT_EQ(check_fleet(fleet.state(), "f1", "PEM").error().problem, Problem::unsupported);
}

}  // namespace
}  // namespace vfmgr::fleet
