// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "service/fleet/doctor/doctor.hpp"

namespace vfmgr::fleet {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

MemberStatus member(std::uint64_t id) {
    MemberStatus one{.id = id, .name = "e" + std::to_string(id), .url = "10.0.0.1:2379"};
    one.version = "3.5.27";
    one.leader = 1;
    one.raft_index = 100;
    one.bytes = one.bytes_in_use = 1 << 20;
    return one;
}

// Three members, two replicas, a host: all is well.
struct Doctor : testing::Test {
    Doctor() {
        observed.now = *parse_rfc3339("2026-01-31T12:00:00.000Z");
        observed.replica = "r1";
        observed.members = {member(1), member(2), member(3)};
        observed.certificates = {{"replica.pem", observed.now + 90 * 24h}};
        state.revision = observed.revision = 7;
        state.leader = Stored<LeaderRecord>{.record = {"r1", "https://r1"}};
        state.replicas = std::make_shared<Records<ReplicaRecord> const>(Records<ReplicaRecord>{
            {"r1", {{"https://r1", "0.2.0", observed.now}}}, {"r2", {{"https://r2", "", {}}}}});
        host.url = "https://10.0.0.11:8470";
        host.state = FleetHostState::active;
        host.joined_at = observed.now - 1h;
    }

    std::vector<Finding> bad() {
        Records<HostRecord> hosts;
        hosts["h1"].record = host;
        state.hosts = std::make_shared<Records<HostRecord> const>(std::move(hosts));
        observed.state = std::make_shared<State const>(state);
        observed.reaches = std::make_shared<Reaches const>(Reaches{{"h1", reach}});
        auto all = judge(observed).findings;
        std::erase_if(all, [](Finding const& one) { return !is_bad(one); });
        return all;
    }
    Finding only() {
        auto const all = bad();
        EXPECT_EQ(all.size(), 1U) << (all.empty() ? "none" : all.back().detail);
        return all.empty() ? Finding{} : all.front();
    }

    Observed observed;
    State state;
    HostRecord host;
    Reach reach;
};

Error gone() {
    return {Problem::unavailable, "it can't be connected to", ""};
}

TEST_F(Doctor, PassesAFleetThatIsWell) {
    EXPECT_TRUE(bad().empty());
    auto const report = judge(observed);
    EXPECT_EQ(report.machine, CheckedMachine::fleet);
    EXPECT_EQ(worst(report), CheckResult::ok);
}

TEST_F(Doctor, WarnsWhenOneMemberIsAwayAndFailsWithoutAMajority) {
    observed.members[2].problem = gone();
    auto const warned = bad();
    ASSERT_EQ(warned.size(), 2U);
    EXPECT_EQ(warned[0].subject, "e3");
    EXPECT_THAT(warned[1].detail, HasSubstr("2 of 3 members"));
    EXPECT_EQ(warned[1].result, CheckResult::warning);
    observed.members[1].problem = gone();
    observed.members[0].leader = 0;
    auto const lost = bad();
    EXPECT_EQ(std::ranges::count(lost, CheckResult::failed, &Finding::result), 2);
    EXPECT_THAT(lost[2].detail, HasSubstr("0 of 3 members"));
}

TEST_F(Doctor, OneMemberAloneIsWorthAWarning) {
    observed.members.resize(1);
    EXPECT_THAT(only().remedy->note, HasSubstr("three members"));
}

TEST_F(Doctor, MembersOfTwoClustersAreNamed) {
    observed.members[2].leader = 3;
    EXPECT_EQ(only().rule, "etcd.leader");
}

TEST_F(Doctor, AMemberThatIsFarBehindIsNamed) {
    observed.members[1].raft_index = 20'000;
    auto const behind = bad();
    ASSERT_EQ(behind.size(), 2U);
    EXPECT_EQ(behind[0].subject, "e1");
    EXPECT_THAT(behind[0].detail, HasSubstr("19900 entries behind"));
}

TEST_F(Doctor, TellsHowToEndAnAlarm) {
    observed.members[1].alarms = {"NOSPACE"};
    auto full = only();
    EXPECT_EQ(full.result, CheckResult::failed);
    EXPECT_THAT(full.remedy->commands, Contains("etcdctl compact 7"));
    EXPECT_THAT(full.remedy->commands, Contains("etcdctl alarm disarm"));
    observed.members[1].alarms = {"CORRUPT"};
    EXPECT_THAT(only().remedy->commands, Contains("etcdctl member remove 2"));
}

TEST_F(Doctor, SpaceIsJudgedAgainstTheQuota) {
    observed.members[0].bytes = observed.members[0].bytes_in_use = std::int64_t{1700} << 20;
    EXPECT_THAT(only().detail, HasSubstr("of 2048 MiB (etcd's default"));
    observed.members[0].bytes_max = std::int64_t{8} << 30;
    EXPECT_TRUE(bad().empty());
    observed.members[0].bytes_in_use = 1 << 20;
    auto const fragmented = only();
    EXPECT_THAT(fragmented.remedy->commands.back(), HasSubstr("defrag"));
    EXPECT_EQ(fragmented.remedy->commands.size(), 2U);
}

TEST_F(Doctor, AnEtcdThatNobodyCompactsIsFound) {
    observed.revision = old_by + 1;
    observed.has_old = true;
    EXPECT_EQ(only().rule, "etcd.compaction");
    observed.has_old = false;
    EXPECT_TRUE(bad().empty());
}

TEST_F(Doctor, KnowsWhatAVersionIsKnownFor) {
    observed.members[0].version = "3.4.23";
    EXPECT_THAT(only().detail, HasSubstr("3.4 and 3.5"));
    auto const all = judge_etcd(observed);
    EXPECT_TRUE(std::ranges::any_of(all, [](Finding const& one) {
        return one.result == CheckResult::ok && one.detail.find("#18089") != std::string::npos;
    }));
    for (auto const* const version : {"3.4", "", "x.y.z", "3.4.x", "99999999999.1.1"}) {
        observed.members[0].version = version;
        EXPECT_TRUE(bad().empty()) << version;
    }
    observed.members[0].version = "3.3.25";
    EXPECT_EQ(bad().size(), 2U);
}

TEST_F(Doctor, AReplicaThatHearsNothingSaysSo) {
    state.stale_since = observed.now - 5s;
    observed.not_followed = gone();
    EXPECT_THAT(only().detail, HasSubstr("can't be connected to"));
}

TEST_F(Doctor, ReplicasAndTheirCertificates) {
    state.leader.reset();
    EXPECT_EQ(only().rule, "replicas.scheduler");
    state.leader = Stored<LeaderRecord>{.record = {"r1", "https://r1"}};
    observed.certificates.front().expires_at = observed.now + 29 * 24h;
    EXPECT_EQ(only().result, CheckResult::warning);
    observed.certificates.front().expires_at = observed.now;
    EXPECT_EQ(only().result, CheckResult::failed);
    observed.certificates.clear();
    state.replicas = std::make_shared<Records<ReplicaRecord> const>(
        Records<ReplicaRecord>{{"r1", {{"https://r1", "", {}}}}});
    EXPECT_THAT(only().detail, HasSubstr("r1 is the only replica"));
}

TEST_F(Doctor, NamesHostsThatAreNotAsTheyShouldBe) {
    reach.unreachable_since = observed.now - 1min;
    reach.unreachable_why = "no route";
    EXPECT_THAT(only().detail, HasSubstr("no route"));
    reach = {};
    host.state = FleetHostState::quarantined;
    host.reason = "its store is older";
    EXPECT_THAT(only().remedy->commands, Contains("vfctl --host fleet host confirm h1"));
    host.state = FleetHostState::joining;
    EXPECT_EQ(only().rule, "hosts.joined");
    host.joined_at = observed.now - 1min;
    EXPECT_TRUE(bad().empty());
}

TEST_F(Doctor, AFencedHostThatAnswersIsAFailure) {
    host.fenced = Statement{observed.now, "uid:0", "its power was cut"};
    EXPECT_EQ(only().result, CheckResult::warning);
    reach.contact = Contact{};
    EXPECT_EQ(only().result, CheckResult::failed);
}

TEST_F(Doctor, AnEtcdThatWasRestoredIsFoundByWhatHostsHaveHad) {
    reach.contact = Contact{.fleet = "f", .host = "h1", .store = "s", .fence = 8};
    EXPECT_EQ(only().rule, "etcd.history");
    reach.contact->fence = 7;
    EXPECT_TRUE(bad().empty());
    auto part = std::make_shared<HostPart>();
    part->host.name = "h1";
    part->documents.identities =
        std::make_shared<IdentitiesPart const>(IdentitiesPart{.generation = 9});
    observed.inventory = std::make_shared<InventoryView const>(InventoryView{{part}});
    EXPECT_THAT(only().detail, HasSubstr("older than revision 9"));
}

TEST_F(Doctor, WithoutAnyMemberThatAnswersNothingIsClaimed) {
    for (auto& one : observed.members) one.problem = gone();
    auto const all = judge_etcd(observed);
    for (auto const* const rule : {"etcd.alarms", "etcd.space", "etcd.version"})
        EXPECT_EQ(std::ranges::find(all, rule, &Finding::rule)->result, CheckResult::unknown)
            << rule;
}

}  // namespace
}  // namespace vfmgr::fleet
