// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/rollout/rollout.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/types/json.hpp"

namespace vfmgr::fleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Network network(std::string name, std::uint32_t mtu) {
    Network one{std::move(name), {}, IpPrefix::parse("10.0.0.0/16").value(), {}};
    one.mtu = mtu;
    return one;
}
NetworkPf pf_with(std::uint8_t bus, char const* address) {
    return {PciAddress{0, bus, 0, 0}, IpAddress::parse(address).value()};
}
Pool pool(std::string name) {
    Pool one;
    one.name = std::move(name);
    one.defaults.network = "train";
    return one;
}

std::vector<HostHas> hosts(int count) {
    std::vector<HostHas> all;
    for (int i = 0; i < count; ++i) {
        HostHas has{fmt::format("node{:03}", i), fmt::format("r{}", i / 8), {}, {}, {}};
        auto train = network("train", 1500);
        for (std::uint8_t rail = 0; rail < 8; ++rail)
            train.pfs.push_back(
                pf_with(rail, fmt::format("10.0.{}.{}", 8 + i / 32, i % 32 * 8 + rail).c_str()));
        has.networks = {train, network("old", 1500)};
        has.pools = {pool("old")};
        all.push_back(std::move(has));
    }
    return all;
}

RolloutSpec larger_mtu() {
    RolloutSpec spec;
    spec.networks.push_back({network("train", 4200), {}, {}});
    return spec;
}
// A change of each kind.
RolloutSpec everything() {
    auto spec = larger_mtu();
    spec.networks.push_back({network("store", 1500), {}, {}});
    spec.pools.push_back({pool("rails"), {}});
    spec.absent_pools.push_back({"old", {}});
    spec.absent_networks.push_back({"old", {}});
    return spec;
}

Rollout planned(RolloutSpec spec, std::vector<HostHas> const& has) {
    auto rollout = planned_rollout({"0000000a", std::move(spec), "uid:0", {}}, has);
    EXPECT_TRUE(rollout) << rollout.error().detail;
    return rollout.value_or(Rollout{});
}

// What hosts have, by path; they do what is asked.
class RolloutWorld {
  public:
    explicit RolloutWorld(std::vector<HostHas> const& has) {
        for (auto const& host : has) {
            for (auto const& one : host.networks)
                have[host.host]["/v1/networks/" + one.name] = to_json_text(nlohmann::json(one));
            for (auto const& one : host.pools)
                have[host.host]["/v1/pools/" + one.name] = to_json_text(nlohmann::json(one));
        }
    }
    RolloutAnswer perform(HostCall const& call) {
        ++calls;
        if (call.path.ends_with("?dry_run=true"))
            return {call.host, Outcome::success, {}, {"VM vm1 loses its link for a moment"}};
        auto& has = have[call.host];
        if (call.method == "PUT")
            has[call.path] = call.body;
        else if (has.erase(call.path) == 0)
            return {call.host, Outcome::refusal, Error{Problem::not_found, "none", ""}, {}};
        return {call.host, Outcome::success, {}, {}};
    }

    std::map<std::string, std::map<std::string, std::string>> have;
    int calls = 0;
};

RolloutAnswer refusal(std::string const& host) {
    return {host, Outcome::refusal, Error{Problem::vf_in_use, "VF 1 is in use", ""}, {}};
}

// Until nothing is asked any more, or it is in that state.
Rollout go_on(Rollout rollout, RolloutWorld& world, RolloutState until) {
    for (int i = 0; i < 10'000 && rollout.state != until; ++i) {
        auto const asks = asks_of(rollout);
        if (asks.empty()) break;
        rollout = after(std::move(rollout), world.perform(asks.front()), "");
    }
    return rollout;
}
Rollout running(Rollout rollout, RolloutWorld& world) {
    rollout = go_on(std::move(rollout), world, RolloutState::planned);
    return run_planned(std::move(rollout), "").value();
}

TEST(Rollout, ChangesOnlyWhatDiffers) {
    auto has = hosts(3);
    has[1].networks[0].mtu = 4200;
    auto const rollout = planned(larger_mtu(), has);
    ASSERT_EQ(asks_of(rollout).size(), 2U);
    auto const call = asks_of(rollout)[0];
    EXPECT_EQ(call.path, "/v1/networks/train?dry_run=true");
    auto const sent = from_json_text<Network>(call.body).value();
    EXPECT_EQ(sent.mtu, 4200U);
    EXPECT_EQ(sent.pfs, has[0].networks[0].pfs) << "each host keeps its own PFs";
    for (auto& host : has) host.networks[0].mtu = 4200;
    auto const nothing = planned(larger_mtu(), has);
    EXPECT_EQ(nothing.state, RolloutState::done);
    EXPECT_THAT(sentences_of(nothing), ElementsAre("all 3 hosts are as desired"));
}

TEST(Rollout, GivesHostsTheirPfs) {
    auto spec = larger_mtu();
    spec.networks[0].pfs["node000"] = {
        {PciAddress{0, 9, 0, 0}, pf_with(9, "10.0.0.9").host_address}};
    auto const rollout = planned(spec, hosts(2));
    auto const sent = from_json_text<Network>(calls_of(rollout, rollout.hosts[0])[0].body).value();
    EXPECT_EQ(sent.pfs, (std::vector{pf_with(9, "10.0.0.9")}));
}

TEST(Rollout, IsForSelectedHosts) {
    auto has = hosts(20);
    has[3].labels["zone"] = "a";
    auto const selected = [&](HostSelector select) {
        auto spec = larger_mtu();
        spec.networks[0].select = std::move(select);
        std::vector<std::string> names;
        for (auto const& host : planned(spec, has).hosts)
            if (!host.changes.empty()) names.push_back(host.host);
        return names;
    };
    EXPECT_EQ(selected({}).size(), 20U);
    EXPECT_THAT(selected({{}, {{"zone", "a"}}, {}}), ElementsAre("node003"));
    EXPECT_THAT(selected({{"node019", "node001"}, {}, {"r2"}}), ElementsAre("node019"));
    auto spec = larger_mtu();
    spec.networks[0].select.names = {"node999"};
    EXPECT_EQ(planned_rollout({"a", spec, "", {}}, has).error().problem, Problem::not_found);
}

TEST(Rollout, GoesInWavesOverRacks) {
    auto const has = hosts(100);
    auto const rollout = planned(larger_mtu(), has);
    std::map<std::uint32_t, std::set<std::string>> racks;
    std::map<std::uint32_t, int> sizes;
    for (auto const& host : rollout.hosts) {
        ++sizes[host.wave];
        racks[host.wave].insert(std::ranges::find(has, host.host, &HostHas::host)->rack);
    }
    EXPECT_THAT(sizes, ElementsAre(std::pair(0U, 1), std::pair(1U, 10), std::pair(2U, 89)));
    EXPECT_EQ(racks[1].size(), 10U) << "no rack has two of the second wave";
    EXPECT_THAT(sentences_of(rollout),
                Contains("3 waves of 1, 10, 89 hosts; it halts if more than 0 fail"));
    auto spec = larger_mtu();
    spec.waves = {WaveSize::parse("2").value(), WaveSize::parse("50%").value()};
    EXPECT_EQ(planned(spec, hosts(4)).waves, 2U);
    EXPECT_EQ(planned(spec, hosts(5)).waves, 3U);
}

TEST(Rollout, TriesAllHostsBeforeItChangesOne) {
    RolloutWorld world(hosts(5));
    auto rollout = planned(larger_mtu(), hosts(5));
    EXPECT_EQ(run_planned(rollout, "").error().problem, Problem::conflict);
    rollout = go_on(rollout, world, RolloutState::planned);
    EXPECT_EQ(rollout.state, RolloutState::planned);
    EXPECT_EQ(world.have, RolloutWorld(hosts(5)).have);
    EXPECT_THAT(sentences_of(rollout), Contains("node000: VM vm1 loses its link for a moment"));
    EXPECT_THAT(asks_of(rollout), IsEmpty()) << "an admin reads the plan first";
    rollout = run_planned(rollout, "act").value();
    EXPECT_EQ(asks_of(rollout).size(), 1U) << "the first wave";
    rollout = go_on(rollout, world, RolloutState::done);
    EXPECT_EQ(rollout.state, RolloutState::done);
}

TEST(Rollout, DoesNotTryWhatDependsOnItself) {
    auto const rollout = planned(everything(), hosts(1));
    auto const& host = rollout.hosts[0];
    std::vector<std::string> tried;
    for (std::size_t i = 0; i < host.changes.size(); ++i)
        if (can_be_tried(rollout, host, i)) tried.push_back(host.changes[i].path);
    EXPECT_THAT(tried, ElementsAre("/v1/networks/train", "/v1/networks/store", "/v1/pools/old"));
    RolloutWorld world(hosts(1));
    auto const done = go_on(running(rollout, world), world, RolloutState::done);
    EXPECT_EQ(done.state, RolloutState::done);
    EXPECT_EQ(world.calls, 3 + 5);
    std::vector<std::string> left;
    for (auto const& [path, body] : world.have["node000"]) left.push_back(path);
    EXPECT_THAT(left, ElementsAre("/v1/networks/store", "/v1/networks/train", "/v1/pools/rails"));
}

TEST(Rollout, IsNotBegunWhereHostsRefuseIt) {
    RolloutWorld world(hosts(3));
    auto rollout = after(planned(larger_mtu(), hosts(3)), refusal("node001"), "");
    rollout = go_on(rollout, world, RolloutState::planned);
    auto const refused = run_planned(rollout, "");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("node001: VF 1 is in use"));
    rollout.spec.failures_max = 1;
    rollout = go_on(run_planned(rollout, "").value(), world, RolloutState::done);
    EXPECT_EQ(rollout.state, RolloutState::done);
    EXPECT_EQ(world.have["node001"], RolloutWorld(hosts(3)).have["node001"]);
    EXPECT_NE(world.have["node002"], RolloutWorld(hosts(3)).have["node002"]);
}

TEST(Rollout, HaltsResumesAndReverts) {
    RolloutWorld world(hosts(12));
    auto const before = world.have;
    auto rollout = running(planned(everything(), hosts(12)), world);
    while (rollout.wave < 2) rollout = after(rollout, world.perform(asks_of(rollout)[0]), "");
    rollout = after(rollout, world.perform(asks_of(rollout)[0]), "");
    auto const failing = asks_of(rollout)[0].host;
    rollout = after(rollout, refusal(failing), "");
    ASSERT_EQ(rollout.state, RolloutState::halted);
    EXPECT_THAT(rollout.detail, HasSubstr("1 hosts failed, 0 may: " + failing));
    EXPECT_THAT(asks_of(rollout), IsEmpty());
    auto other = world;
    EXPECT_EQ(go_on(resumed(rollout, "").value(), other, RolloutState::done).state,
              RolloutState::done);
    rollout = go_on(reverted(rollout, "").value(), world, RolloutState::reverted);
    EXPECT_EQ(rollout.state, RolloutState::reverted);
    EXPECT_EQ(world.have, before);
    auto undone =
        go_on(running(planned(everything(), hosts(12)), other), other, RolloutState::done);
    undone = go_on(reverted(undone, "").value(), other, RolloutState::reverted);
    EXPECT_EQ(undone.state, RolloutState::reverted);
    EXPECT_EQ(other.have, before) << "also after its end";
}

TEST(Rollout, RevertsACallWhoseAnswerWasLost) {
    RolloutWorld world(hosts(2));
    auto const before = world.have;
    auto rollout = running(planned(everything(), hosts(2)), world);
    (void)world.perform(asks_of(rollout)[0]);
    rollout = after(rollout, {asks_of(rollout)[0].host, Outcome::unknown, {}, {}}, "");
    EXPECT_EQ(asks_of(rollout).size(), 1U) << "it is asked again";
    rollout = halted(rollout, "not now", "").value();
    EXPECT_THAT(asks_of(rollout), IsEmpty());
    rollout = go_on(reverted(rollout, "").value(), world, RolloutState::reverted);
    EXPECT_EQ(rollout.state, RolloutState::reverted);
    EXPECT_EQ(world.have, before);
}

TEST(Rollout, CountsAnAnswerAfterItHalted) {
    RolloutWorld world(hosts(2));
    auto rollout = running(planned(larger_mtu(), hosts(2)), world);
    auto const ask = asks_of(rollout)[0];
    rollout = after(halted(rollout, "not now", "").value(), world.perform(ask), "");
    EXPECT_EQ(rollout.hosts[0].state, RolloutHostState::done);
    EXPECT_EQ(rollout.state, RolloutState::halted);
}

TEST(Rollout, HaltsWhereItCanNotBeReverted) {
    RolloutWorld world(hosts(2));
    auto rollout =
        go_on(running(planned(larger_mtu(), hosts(2)), world), world, RolloutState::done);
    rollout = after(reverted(rollout, "").value(), refusal("node000"), "");
    rollout = go_on(rollout, world, RolloutState::halted);
    ASSERT_EQ(rollout.state, RolloutState::halted);
    EXPECT_THAT(rollout.detail, HasSubstr("node000: was not reverted: VF 1 is in use"));
    rollout = go_on(resumed(rollout, "").value(), world, RolloutState::reverted);
    EXPECT_EQ(rollout.state, RolloutState::reverted);
    EXPECT_EQ(world.have, RolloutWorld(hosts(2)).have);
}

TEST(Rollout, SkipsAHostThatDoesNotAnswer) {
    RolloutWorld world(hosts(2));
    auto rollout = skipped(planned(larger_mtu(), hosts(2)), "node000", "").value();
    rollout = go_on(running(rollout, world), world, RolloutState::done);
    EXPECT_EQ(rollout.state, RolloutState::done);
    EXPECT_EQ(skipped(rollout, "node001", "").error().problem, Problem::conflict);
    EXPECT_EQ(skipped(rollout, "node999", "").error().problem, Problem::not_found);
    EXPECT_THAT(sentences_of(rollout), Contains("node000: skipped; 0 of 1 changes are done"));
}

TEST(Rollout, RefusesWhatItsStateExcludes) {
    auto const rollout = planned(larger_mtu(), hosts(1));
    for (auto const& refused : {run_planned(rollout, ""), halted(rollout, "", ""),
                                resumed(rollout, ""), reverted(rollout, "")}) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::conflict);
    }
}

TEST(Rollout, OfAThousandHostsFitsIntoEtcd) {
    auto const rollout = planned_rollout({"0000000a", larger_mtu(), "uid:0", {}}, hosts(1000));
    ASSERT_TRUE(rollout) << rollout.error().detail;
    std::cout << "[  bytes   ] " << to_json_text(nlohmann::json(*rollout)).size() << "\n";
    auto const more = planned_rollout({"0000000a", larger_mtu(), "uid:0", {}}, hosts(2000));
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().problem, Problem::limit_exceeded);
}

// A crash: the next leader has what was written.
TEST(Rollout, IsReadAsItIsWritten) {
    RolloutWorld world(hosts(12));
    auto rollout = planned(everything(), hosts(12));
    for (int i = 0; i < 200; ++i) {
        auto const read = from_json_text<Rollout>(to_json_text(nlohmann::json(rollout)));
        ASSERT_TRUE(read) << read.error().detail;
        ASSERT_EQ(*read, rollout);
        auto const asks = asks_of(*read);
        if (rollout.state == RolloutState::planned) rollout = run_planned(*read, "").value();
        if (!asks.empty()) rollout = after(*read, world.perform(asks.back()), "");
        if (i == 60) rollout = reverted(halted(rollout, "", "").value(), "").value();
    }
    EXPECT_EQ(rollout.state, RolloutState::reverted);
    EXPECT_EQ(world.have, RolloutWorld(hosts(12)).have);
}

TEST(RolloutSpec, NamesEachOnce) {
    auto const places = [](char const* text) {
        std::vector<std::string> all;
        auto const read = from_json_text<RolloutSpec>(text);
        if (read) return all;
        for (auto const& violation : read.error().violations) all.push_back(violation.pointer);
        return all;
    };
    EXPECT_THAT(places("{}"), ElementsAre("/networks"));
    EXPECT_THAT(places(R"({"absent_pools": [{"name": "a"}], "waves": ["1", "10%"]})"), IsEmpty());
    EXPECT_THAT(places(R"({"pools": [{"pool": {"name": "a"}}], "absent_pools": [{"name": "a"}],
                           "waves": ["0", "101%", "x", "1"]})"),
                ElementsAre("/waves/0", "/waves/1", "/waves/2", "/absent_pools/0"));
    EXPECT_THAT(places(R"({"networks": [{"network": {"prefix": "10.0.0.0/8", "pfs": [
                           {"pf": "0000:01:00.0", "host_address": "10.0.0.1"}]}}]})"),
                ElementsAre("/networks/0/network/name", "/networks/0/network/pfs"));
}

TEST(Rollout, RefusesADocumentThatLeadsNowhere) {
    auto document = nlohmann::json(planned(larger_mtu(), hosts(1)));
    for (auto const& [key, value] : {std::pair{"applied", 1}, {"planned", 1}, {"applied", 2}}) {
        auto wrong = document;
        wrong["hosts"][0][key] = value;
        EXPECT_FALSE(from_json_document<Rollout>(wrong)) << key << value;
    }
    auto wrong = document;
    wrong["waves"] = 4'000'000'000;
    EXPECT_FALSE(from_json_document<Rollout>(wrong)) << "it would count for hours";
    wrong = document;
    wrong["hosts"][0]["state"] = "reverting";
    EXPECT_FALSE(from_json_document<Rollout>(wrong));
    document["bodies"] = nlohmann::json::array();
    EXPECT_FALSE(from_json_document<Rollout>(document));
}

}  // namespace
}  // namespace vfmgr::fleet
