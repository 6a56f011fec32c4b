// SPDX-License-Identifier: Apache-2.0
// Chooses one of many hosts again and again, and prints how many milliseconds one decision takes:
//   fleet_schedule ours|peer HOSTS TIMES    prints "MEDIAN P99"
// Each host has 8 PFs of 8 VFs and 8 GPUs; some VFs and GPUs are in use, each host's others. The
// request is for 8 VFs on rails of their own, near 8 GPUs. ours is schedule(): a ranking of all
// hosts with the reason of each. peer finds the first host by name that suits and stops there,
// without a reason for any: what a scheduler does that explains nothing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <random>
#include <string_view>

#include "tests/unit/service/fleet/schedule/fleet_hosts.hpp"

namespace {

using namespace vfmgr::fleet;

std::vector<HostSummary> hosts_of(unsigned count) {
    std::minstd_rand dice(1);
    std::vector<HostSummary> hosts;
    for (unsigned i = 0; i < count; ++i) {
        auto host = test::training_host(fmt::format("node{:05}", i), 8, 8, 8);
        host.rack = fmt::format("r{}", i / 32);
        for (auto& pf : host.rails) {
            auto const used = static_cast<std::uint16_t>(dice() % 9);
            // Three hosts of four have a VF on each rail.
            pf.free_vfs = static_cast<std::uint16_t>(i % 4 == 0 ? 8 - used : std::max(1, 8 - used));
            pf.pools[0].free_vfs = pf.free_vfs;
            host.used += used;
        }
        if (i % 16 == 0) host.gpus[dice() % 8].free = false;
        hosts.push_back(std::move(host));
    }
    return hosts;
}

PlacementRequest request() {
    auto spec = test::of_train(8);
    spec.one_per_rail = true;
    spec.near = vfmgr::Near::gpu;
    spec.within = vfmgr::PciDistance::node;
    return {spec};
}

bool decide(std::string_view what, std::vector<HostSummary const*> const& hosts,
            PlacementRequest const& asked) {
    if (what == "ours") {
        auto const ranked = schedule(hosts, asked, {});
        return ranked.size() == hosts.size() && ranked.front().fit.has_value();
    }
    return std::ranges::any_of(hosts, [&](auto const* host) {
        return std::holds_alternative<Suits>(suits(*host, asked, {}));
    });
}

bool read_number(char const* text, unsigned& number) {
    std::string_view const all = text;
    auto const read = std::from_chars(all.data(), all.data() + all.size(), number);
    return read.ec == std::errc{} && read.ptr == all.data() + all.size() && number > 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::string_view const what = argc == 4 ? argv[1] : "";
    unsigned count = 0;
    unsigned times = 0;
    if ((what != "ours" && what != "peer") || !read_number(argv[2], count) ||
        !read_number(argv[3], times)) {
        std::cerr << "usage: fleet_schedule ours|peer HOSTS TIMES\n";
        return 2;
    }
    auto const hosts = hosts_of(count);
    auto const all = test::all_of(hosts);
    auto const asked = request();
    std::vector<double> took;
    for (unsigned i = 0; i < times; ++i) {
        auto const began = std::chrono::steady_clock::now();
        if (!decide(what, all, asked)) {
            std::cerr << "fleet_schedule: no host suits\n";
            return 1;
        }
        std::chrono::duration<double, std::milli> const one =
            std::chrono::steady_clock::now() - began;
        took.push_back(one.count());
    }
    std::ranges::sort(took);
    std::cout << fmt::format("{:.6f} {:.6f}\n", took[took.size() / 2],
                             took[took.size() * 99 / 100]);
    return 0;
}
