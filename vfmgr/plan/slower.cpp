// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/slower.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr {
namespace {

constexpr std::size_t runs_max = 10;
constexpr std::size_t runs_min = 5;

enum class Better { more, less };

struct Figure {
    char const* name;
    char const* prefix;
    char const* unit;
    Better better;
    double factor;  // of the median: a figure beyond it is clearly worse
};
constexpr std::array compared{Figure{"bandwidth_mbps", "", "Mbit/s", Better::more, 0.75},
                              Figure{"p50_us", "p50 ", "us", Better::less, 1.33}};

// Figures come from the guest: a value that is no duration and no rate is ignored.
std::optional<double> figure_of(TestResult const& test, char const* name) {
    auto const found = test.figures.find(name);
    if (test.verdict != Verdict::pass || found == test.figures.end() || !(found->second > 0))
        return std::nullopt;
    return found->second;
}

bool comparable(Verification const& run, Verification const& earlier) {
    return earlier.verdict == Verdict::pass && earlier.path == run.path &&
           earlier.responder == run.responder;
}

// Returns the last ones available, in ascending order.
std::vector<double> figures_before(Verification const& run, std::string const& test,
                                   char const* name, std::vector<Verification> const& earlier) {
    std::vector<double> before;
    for (auto const& one : earlier) {
        if (before.size() == runs_max) break;
        auto const same = std::ranges::find(one.tests, test, &TestResult::name);
        if (!comparable(run, one) || same == one.tests.end()) continue;
        if (auto const figure = figure_of(*same, name)) before.push_back(*figure);
    }
    std::ranges::sort(before);
    return before;
}

double median_of(std::vector<double> const& ascending) {
    auto const half = ascending.size() / 2;
    if (ascending.size() % 2 == 1) return ascending[half];
    return (ascending[half - 1] + ascending[half]) / 2;
}

constexpr char const* remedy =
    "look for other load while it runs: on the PF (ip -s link, vfctl vf list), on the host's CPUs "
    "(top, numastat) and in the VM (vmstat); and for what changed since: rate limits and MTU "
    "of the VF, the VM's CPUs, kernel or firmware";

}  // namespace

std::vector<Warning> slower_than_before(Verification const& run,
                                        std::vector<Verification> const& earlier) {
    std::vector<Warning> warnings;
    for (auto const& test : run.tests)
        for (auto const& kind : compared) {
            auto const now = figure_of(test, kind.name);
            if (!now) continue;
            auto const before = figures_before(run, test.name, kind.name, earlier);
            if (before.size() < runs_min) continue;
            auto const median = median_of(before);
            bool const more = kind.better == Better::more;
            // It must be beyond all of them, too: a figure that always varied is no news.
            auto const worst = more ? before.front() : before.back();
            bool const worse = more ? *now < kind.factor * median && *now < worst
                                    : *now > kind.factor * median && *now > worst;
            if (!worse) continue;
            warnings.push_back(
                {test.name,
                 fmt::format("{}: {}{:.1f} {} is {:.2f} times the median of this VF's last {} runs "
                             "(median {:.1f}, {} {:.1f})",
                             test.name, kind.prefix, *now, kind.unit, *now / median, before.size(),
                             median, more ? "lowest" : "highest", worst),
                 remedy});
        }
    return warnings;
}

}  // namespace vfmgr
