// SPDX-License-Identifier: Apache-2.0
// Of drawn fleets and requests: what the scheduler may never do.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>
#include <set>

#include "service/fleet/schedule/schedule.hpp"
#include "tests/unit/service/fleet/schedule/fleet_hosts.hpp"

namespace vfmgr::fleet {
namespace {

template <class T>
T drawn_up_to(T last) {
    return static_cast<T>(*rc::gen::inRange<int>(0, static_cast<int>(last) + 1));
}

HostSummary drawn_host(int number) {
    auto const rails = *rc::gen::inRange(1, 5);
    auto host = test::training_host(fmt::format("node{}", number), rails, 0, 8);
    host.used = 0;
    host.rack = fmt::format("r{}", *rc::gen::inRange(0, 3));
    host.labels["zone"] = *rc::gen::element<std::string>("a", "b");
    host.state = *rc::gen::weightedElement<HostState>(
        {{6, HostState::active}, {1, HostState::cordoned}, {1, HostState::unreachable}});
    host.stale = drawn_up_to(9) == 0;
    for (auto& pf : host.rails) {
        pf.free_vfs = drawn_up_to<std::uint16_t>(4);
        pf.pools[0].free_vfs = std::min(pf.free_vfs, drawn_up_to<std::uint16_t>(4));
        host.used += 8U - pf.free_vfs;
        pf.link_up = drawn_up_to(7) > 0;
        pf.rail = fmt::format("{}", drawn_up_to(rails));
        if (drawn_up_to(5) == 0) pf.networks.clear();
        pf.place = test::place_behind(pf.place.address.bus, drawn_up_to(1),
                                      static_cast<std::uint8_t>(drawn_up_to(2)));
    }
    for (auto& gpu : host.gpus) gpu.free = drawn_up_to(4) > 0;
    if (drawn_up_to(2) == 0) host.left.macs = drawn_up_to(8);
    return host;
}

FleetReservationSpec drawn_spec() {
    auto spec = test::of_train(static_cast<std::uint16_t>(1 + drawn_up_to(4)));
    if (drawn_up_to(1) == 0) spec.pool = "rails";
    spec.one_per_rail = drawn_up_to(1) == 0;
    if (drawn_up_to(1) == 0) {
        spec.near = Near::gpu;
        spec.gpus = static_cast<std::uint16_t>(1 + drawn_up_to(spec.count - 1));
        spec.within = *rc::gen::element(PciDistance::sys, PciDistance::pxb, PciDistance::pix);
    }
    if (drawn_up_to(3) == 0) spec.labels["zone"] = "a";
    if (drawn_up_to(3) == 0) spec.racks = {"r0", "r1"};
    spec.strategy = *rc::gen::element(HostStrategy::pack, HostStrategy::spread);
    return spec;
}

std::vector<HostSummary> drawn_fleet() {
    std::vector<HostSummary> hosts;
    auto const count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < count; ++i) hosts.push_back(drawn_host(i));
    return hosts;
}

RailPf const& pf_of(HostSummary const& host, PciAddress const& address) {
    return *std::ranges::find(host.rails, address,
                              [](RailPf const& pf) { return pf.place.address; });
}

HostSummary const& named(std::vector<HostSummary> const& hosts, std::string const& name) {
    return *std::ranges::find(hosts, name, &HostSummary::name);
}

void check_shares(HostSummary const& host, FleetReservationSpec const& spec, Suits const& fit) {
    std::uint32_t sum = 0;
    std::set<std::string> rails;
    std::map<PciAddress, std::uint16_t> shares;
    for (auto const& [address, vfs] : fit.vfs) {
        auto const& pf = pf_of(host, address);
        RC_ASSERT((vfs > 0 && vfs <= pf.free_vfs && pf.link_up));
        RC_ASSERT((!spec.pool || vfs <= pf.pools.at(0).free_vfs));
        RC_ASSERT(pf.networks == std::vector<std::string>{"train"});
        if (spec.one_per_rail) RC_ASSERT((rails.insert(pf.rail).second && vfs == 1));
        sum += vfs;
        shares[address] = vfs;
    }
    RC_ASSERT(sum == spec.count);
    RC_ASSERT(host.left.macs.value_or(99) >= spec.count);
    RC_ASSERT((fit.gpus.size() == (spec.near ? *spec.gpus : 0U)));
    std::set<PciAddress> gpus;
    for (auto const& share : fit.gpus) {
        auto const& gpu = *std::ranges::find(host.gpus, share.gpu,
                                             [](HostGpu const& one) { return one.place.address; });
        RC_ASSERT((gpu.free && gpus.insert(share.gpu).second));
        RC_ASSERT(distance(gpu.place, pf_of(host, share.pf).place) == share.distance);
        RC_ASSERT(share.distance >= *spec.within);
        RC_ASSERT(shares[share.pf]-- > 0U);
    }
}

RC_GTEST_PROP(ScheduleOfDrawnFleets, TakesOnlyWhatIsThereAndRequested, ()) {
    auto const hosts = drawn_fleet();
    auto const spec = drawn_spec();
    for (auto const& one : schedule(test::all_of(hosts), {spec}, {})) {
        RC_ASSERT(!one.reason.empty());
        if (!one.fit) continue;
        auto const& host = named(hosts, one.host);
        RC_ASSERT((host.state == HostState::active && !host.stale));
        RC_ASSERT((spec.labels.empty() || host.labels.at("zone") == "a"));
        RC_ASSERT((spec.racks.empty() || host.rack != "r2"));
        check_shares(host, spec, *one.fit);
    }
}

RC_GTEST_PROP(ScheduleOfDrawnFleets, IsEqualForEqualHostsInAnyOrder, (unsigned seed)) {
    auto hosts = drawn_fleet();
    auto const spec = drawn_spec();
    auto const before = candidates_of(schedule(test::all_of(hosts), {spec}, {}));
    std::shuffle(hosts.begin(), hosts.end(), std::minstd_rand(seed));
    RC_ASSERT(candidates_of(schedule(test::all_of(hosts), {spec}, {})) == before);
}

RC_GTEST_PROP(ScheduleOfDrawnFleets, PacksTheFullestAndSpreadsToTheEmptiest, ()) {
    auto const hosts = drawn_fleet();
    auto const spec = drawn_spec();
    auto const ranked = schedule(test::all_of(hosts), {spec}, {});
    for (std::size_t i = 1; i < ranked.size() && ranked[i].fit; ++i) {
        auto const& better = *ranked[i - 1].fit;
        auto const& worse = *ranked[i].fit;
        RC_ASSERT(better.distances <= worse.distances);
        if (better.distances != worse.distances) continue;
        RC_ASSERT((spec.strategy == HostStrategy::pack ? better.left <= worse.left
                                                       : better.left >= worse.left));
    }
}

RC_GTEST_PROP(ScheduleOfDrawnFleets, SuitsStillWithMoreFreeVfs, ()) {
    std::vector<HostSummary> hosts{drawn_host(0)};
    auto const spec = drawn_spec();
    auto const before = schedule(test::all_of(hosts), {spec}, {});
    auto& pf = hosts[0].rails[static_cast<std::size_t>(
        *rc::gen::inRange(0, static_cast<int>(hosts[0].rails.size())))];
    ++pf.free_vfs;
    ++pf.pools[0].free_vfs;
    --hosts[0].used;
    auto const after = schedule(test::all_of(hosts), {spec}, {});
    RC_ASSERT((!before[0].fit || after[0].fit));
    RC_ASSERT((!before[0].fit || after[0].fit->distances <= before[0].fit->distances));
}

RC_GTEST_PROP(ScheduleOfDrawnFleets, NeverTakesMoreThanIsFreeInAllDecisions, ()) {
    auto const hosts = drawn_fleet();
    Taken taken;
    std::map<std::pair<std::string, PciAddress>, int> sums;
    std::set<std::pair<std::string, PciAddress>> gpus;
    for (int i = 0; i < 12; ++i) {
        auto const spec = drawn_spec();
        auto const first = chosen(schedule(test::all_of(hosts), {spec}, taken), spec);
        if (!first) continue;
        auto const decision = decision_of(*first, spec);
        for (auto const& [pf, vfs] : decision.vfs) {
            auto& sum = sums[{decision.host, pf}];
            sum += vfs;
            RC_ASSERT(sum <= pf_of(named(hosts, decision.host), pf).free_vfs);
        }
        for (auto const& gpu : decision.gpus) RC_ASSERT(gpus.insert({decision.host, gpu}).second);
        taken.add(std::to_string(i), decision);
    }
}

}  // namespace
}  // namespace vfmgr::fleet
