// SPDX-License-Identifier: Apache-2.0
// Pairs 8 GPUs with 8 PFs again and again, and prints how many milliseconds one time takes:
//   placement place|try-all|plan TIMES
// place is place_gpus(). try-all judges the best of every set of taken PFs, as the tests do; the
// result of place must be as good. plan plans all 8 attachments of one request, placement included.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <iostream>
#include <string_view>

#include "tests/unit/vfmgr/plan/gpu_host.hpp"

namespace {

using namespace vfmgr;

constexpr std::size_t count = 8;

// Two nodes with two switches each. Pairs differ in distance, and not each GPU has a PF of its own
// switch: choosing for one GPU after the other is not the best for all.
PciPlace place_at(std::size_t number, std::uint8_t first_bus, std::size_t turned) {
    auto const slot = (number + turned) % count;
    auto const low = [](std::size_t value) { return static_cast<std::uint8_t>(value); };
    PciPlace place{{0, low(first_bus + number), 0, 0}, {}, static_cast<int>(slot / 4), {}, {}};
    place.above = {{{0, low(0xd0 + slot / 4), 1, 0}}, {{0, low(0xe0 + slot / 2), 0, 0}}};
    if (number % 3 != 0) place.above.push_back({{0, low(0xf0 + slot / 2), low(number), 0}});
    return place;
}

test::GpuHost host_of_eight() {
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
    for (std::size_t i = 0; i < count; ++i) {
        gpus.push_back(place_at(i, 0x10, 0));
        nics.push_back({place_at(i, 0x40, 3), 1});
    }
    return test::gpu_host(gpus, nics);
}

bool run_once(std::string_view what, test::GpuHost const& host, test::Badness const& best) {
    if (what == "place")
        return test::badness(host.gpus, host.nics, place_gpus(host.gpus, host.nics)) == best;
    if (what == "try-all") return test::best_of_each_set(host.gpus, host.nics) == best;
    std::vector<AttachmentSpec> const specs(count, test::near_gpu());
    auto const set = test::plan_near_gpus(host, specs);
    return set &&
           test::badness(host.gpus, host.nics, test::placement_of(host, set->attachments)) == best;
}

}  // namespace

int main(int argc, char** argv) {
    std::string_view const what = argc == 3 ? argv[1] : "";
    std::string_view const times_text = argc == 3 ? argv[2] : "";
    unsigned times = 0;
    std::from_chars(times_text.data(), times_text.data() + times_text.size(), times);
    if ((what != "place" && what != "try-all" && what != "plan") || times == 0) {
        std::cerr << "usage: placement place|try-all|plan TIMES\n";
        return 2;
    }
    auto const host = host_of_eight();
    auto const best = test::best_of_each_set(host.gpus, host.nics);
    auto const began = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < times; ++i)
        if (!run_once(what, host, best)) {
            std::cerr << "placement: " << what << " is not the best there is\n";
            return 1;
        }
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - began;
    std::cout << fmt::format("{:.6f}\n", took.count() / times);
    return 0;
}
