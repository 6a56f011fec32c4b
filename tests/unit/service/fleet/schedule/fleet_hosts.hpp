// SPDX-License-Identifier: Apache-2.0
// Hosts as the scheduler knows them: drawn ones, and some that are alike. For tests and benches.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "service/fleet/schedule/schedule.hpp"

namespace vfmgr::fleet::test {

// A function behind a switch of its own NUMA node's host bridge; those of one `leaf` share the
// switch.
inline PciPlace place_behind(std::uint8_t bus, int node, std::uint8_t leaf) {
    auto const low = [](int value) { return static_cast<std::uint8_t>(value); };
    PciPlace place{{0, bus, 0, 0}, {}, node, {}, {}};
    place.above = {{{0, low(0xd0 + node), 1, 0}},
                   {{0, low(0xe0 + node), 0, 0}},
                   {{0, low(0xe8 + node), leaf, 0}},
                   {{0, low(0xf0 + leaf), 0, 0}}};
    return place;
}

// A PF and a GPU behind each of `rails` switches, as in a machine built for training: the network
// "train" on all of them, and the pool "rails", which holds all VFs.
inline HostSummary training_host(std::string name, int rails, std::uint16_t free,
                                 std::uint16_t vfs_each) {
    HostSummary host;
    host.name = std::move(name);
    for (int i = 0; i < rails; ++i) {
        auto const number = static_cast<std::uint8_t>(i);
        RailPf pf{place_behind(static_cast<std::uint8_t>(0x40 + i), 2 * i / rails, number),
                  fmt::format("{}", i),
                  LinkLayer::ethernet,
                  true,
                  free,
                  {"train"},
                  {}};
        pf.pools.push_back({"rails", free});
        host.rails.push_back(std::move(pf));
        host.gpus.push_back(
            {place_behind(static_cast<std::uint8_t>(0x10 + i), 2 * i / rails, number)});
    }
    host.vfs = static_cast<std::uint32_t>(rails) * vfs_each;
    host.used = host.vfs - static_cast<std::uint32_t>(rails) * free;
    return host;
}

inline std::vector<HostSummary const*> all_of(std::vector<HostSummary> const& hosts) {
    std::vector<HostSummary const*> all;
    for (auto const& host : hosts) all.push_back(&host);
    return all;
}

inline FleetReservationSpec of_train(std::uint16_t count) {
    FleetReservationSpec spec;
    spec.network = "train";
    spec.count = count;
    return spec;
}

}  // namespace vfmgr::fleet::test
