// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace vfmgr::fleet {
namespace {

using namespace std::chrono_literals;

struct Known {
    State state;
    InventoryView inventory;
    Reaches reaches;
    Time now = *parse_rfc3339("2026-01-31T12:00:00.000Z");

    [[nodiscard]] prometheus::MetricFamily family(std::string const& name) const {
        auto const all = fleet_metrics({state, inventory, reaches, "r1", now});
        auto const found = std::ranges::find(all, name, &prometheus::MetricFamily::name);
        EXPECT_NE(found, all.end()) << name;
        return found == all.end() ? prometheus::MetricFamily{} : *found;
    }
    // Of the series with that label's value; of the only one, if it is empty.
    [[nodiscard]] double value(std::string const& name, std::string const& label = {}) const {
        for (auto const& one : family(name).metric)
            if (label.empty() || one.label.front().value == label) return one.gauge.value;
        ADD_FAILURE() << name << " " << label;
        return -1;
    }
};

HostRecord in_state(FleetHostState state) {
    HostRecord host;
    host.state = state;
    return host;
}

TEST(FleetMetrics, CountHostsByStateAndWord) {
    Known known;
    Records<HostRecord> hosts;
    hosts["h1"].record = in_state(FleetHostState::active);
    hosts["h2"].record = in_state(FleetHostState::active);
    hosts["h2"].record.fenced = Statement{};
    hosts["h3"].record = in_state(FleetHostState::quarantined);
    known.state.hosts = std::make_shared<Records<HostRecord> const>(std::move(hosts));
    EXPECT_EQ(known.value("vfmgr_fleet_hosts", "active"), 2);
    EXPECT_EQ(known.value("vfmgr_fleet_hosts", "quarantined"), 1);
    EXPECT_EQ(known.value("vfmgr_fleet_hosts", "joining"), 0);
    EXPECT_EQ(known.value("vfmgr_fleet_hosts_fenced"), 1);
    EXPECT_EQ(known.value("vfmgr_fleet_hosts_cordoned"), 0);
}

TEST(FleetMetrics, NameTheHostsThatAreAwayLongestAndNoMore) {
    Known known;
    for (int number = 0; number < 1000; ++number) {
        auto& reach = known.reaches["h" + std::to_string(number)];
        reach.unreachable_since = known.now - std::chrono::seconds(number);
    }
    EXPECT_EQ(known.value("vfmgr_fleet_hosts_unreachable"), 1000);
    auto const since = known.family("vfmgr_fleet_host_unreachable_since_timestamp_seconds");
    EXPECT_EQ(since.metric.size(), named_hosts_max);
    EXPECT_EQ(since.metric.front().label.front().value, "h999");
}

TEST(FleetMetrics, CountEventsThatAreMissing) {
    Known known;
    known.reaches["h1"].contact.emplace().last_event = 10;
    known.reaches["h1"].last_event.number = 7;
    known.reaches["h2"].contact.emplace().last_event = 5;
    known.reaches["h2"].last_event.number = 9;
    EXPECT_EQ(known.value("vfmgr_fleet_events_behind"), 3);
}

TEST(FleetMetrics, SayHowOldEtcdsWordIsAndWhoSchedules) {
    Known known;
    known.state.leader = Stored<LeaderRecord>{.record = {"r1", ""}};
    EXPECT_EQ(known.value("vfmgr_fleet_etcd_stale_seconds"), 0);
    EXPECT_EQ(known.value("vfmgr_fleet_scheduler"), 1);
    known.state.stale_since = known.now - 90s;
    known.state.leader = Stored<LeaderRecord>{.record = {"r2", ""}};
    EXPECT_EQ(known.value("vfmgr_fleet_etcd_stale_seconds"), 90);
    EXPECT_EQ(known.value("vfmgr_fleet_scheduler"), 0);
}

TEST(FleetMetrics, CountVfsOfAllHosts) {
    Known known;
    for (int number = 0; number < 2; ++number) {
        auto part = std::make_shared<HostPart>();
        auto vfs = std::make_shared<Part<VfFacts>>();
        vfs->items.resize(3);
        vfs->items[0].facts.state = VfStatus::free;
        vfs->items[1].facts.state = VfStatus::attached;
        part->documents.vfs = vfs;
        if (number == 0) part->stale = Stale{known.now, StaleWhy::unreachable};
        known.inventory.hosts.push_back(part);
    }
    EXPECT_EQ(known.value("vfmgr_fleet_vfs", "free"), 2);
    EXPECT_EQ(known.value("vfmgr_fleet_vfs", "attached"), 2);
    EXPECT_EQ(known.value("vfmgr_fleet_vfs", "unknown"), 2);
    EXPECT_EQ(known.value("vfmgr_fleet_hosts_stale", "unreachable"), 1);
    EXPECT_EQ(known.value("vfmgr_fleet_hosts_stale", "catching_up"), 0);
}

}  // namespace
}  // namespace vfmgr::fleet
