// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/choose.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

bool mac_holds(VfSpec const& desired, VfSpec const& reported) {
    if (!desired.mac || !reported.mac) return false;
    return *reported.mac == *desired.mac ||
           (desired.mac->zero() && *reported.mac == quirks::stand_in_mac);
}

bool names_vfio_driver(std::string_view driver) {
    return driver == "vfio-pci" || driver.ends_with("-vfio-pci") || driver.ends_with("_vfio_pci");
}

VfSpec only_members_of(VfSpec const& mask, VfSpec values) {
    for_each_member([&](VfAttribute, auto member) {
        if (!(mask.*member)) (values.*member).reset();
    });
    return values;
}

VfSpec differing(VfSpec desired, VfSpec const& now) {
    for_each_member([&](VfAttribute, auto member) {
        if (desired.*member == now.*member) (desired.*member).reset();
    });
    if (mac_holds(desired, now)) desired.mac.reset();
    return desired;
}

VfSpec reported_to_differ(VfSpec const& desired, VfSpec const& now) {
    return only_members_of(now, differing(desired, now));
}

bool holds(VfSpec const& desired, VfSpec const& now) {
    bool all = true;
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(desired.*member) || desired.*member == now.*member) return;
        all = all && attribute == VfAttribute::mac && mac_holds(desired, now);
    });
    return all;
}

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

// Returns the figures of the last comparable runs, in ascending order.
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

namespace {

Result<VfState const*> named_vf(PfState const& pf, std::vector<VfUse> const& uses,
                                VfChoice const& choice) {
    auto const requested = *choice.index;
    auto vf = std::find_if(pf.vfs.begin(), pf.vfs.end(),
                           [&](VfState const& one) { return one.index == requested; });
    if (vf == pf.vfs.end())
        return fail(Problem::not_found,
                    fmt::format("{} has no VF {}: it has {}", display_name(pf.info), requested,
                                pf.info.num_vfs),
                    fmt::format("create more: vfctl pf set {} --num-vfs {}", display_name(pf.info),
                                requested + 1));
    for (auto const& use : uses)
        if (use.vf.index == requested &&
            (use.reservation.empty() || use.reservation != choice.reservation))
            return fail(
                Problem::vf_in_use,
                fmt::format("VF {} of {} is {}", requested, display_name(pf.info), use.reason),
                "leave the VF number out to get any free one");
    return &*vf;
}

bool is_reserved_as(std::vector<VfUse> const& uses, std::uint16_t index,
                    std::string const& reservation) {
    return std::ranges::any_of(uses, [&](VfUse const& use) {
        return use.vf.index == index && use.reservation == reservation;
    });
}

std::vector<std::uint16_t> free_among(PfState const& pf, std::vector<VfUse> const& uses,
                                      VfChoice const& choice) {
    std::set<std::uint16_t> used;
    for (auto const& use : uses)
        if (use.reservation.empty() || use.reservation != choice.reservation)
            used.insert(use.vf.index);
    std::vector<std::uint16_t> free;
    for (auto const& vf : pf.vfs) {
        bool const kept =
            choice.reservation.empty() || is_reserved_as(uses, vf.index, choice.reservation);
        bool const in_pool =
            !choice.pool || holds_vf(choice.pool->select, VfId{pf.info.pci, vf.index});
        if (kept && in_pool && !used.contains(vf.index)) free.push_back(vf.index);
    }
    return free;
}

Error no_free_vf(PfState const& pf, VfChoice const& choice) {
    auto const name = display_name(pf.info);
    if (pf.vfs.empty())
        return {Problem::limit_exceeded, fmt::format("{} has no VFs", name),
                fmt::format("create some: vfctl pf set {} --num-vfs {}", name, pf.info.total_vfs)};
    if (!choice.reservation.empty())
        return {Problem::limit_exceeded,
                fmt::format("reservation {} keeps no VF of {}", choice.reservation, name),
                fmt::format("vfctl reservation show {} lists its VFs", choice.reservation)};
    if (choice.pool)
        return {Problem::limit_exceeded,
                fmt::format("all VFs of pool {} on {} are in use", choice.pool->name, name),
                "detach one, or use another pool"};
    return {Problem::limit_exceeded,
            fmt::format("all {} VFs of {} are in use", pf.info.num_vfs, name),
            "detach one, or use another PF"};
}

}  // namespace

bool holds_vf(PoolSelectors const& select, VfId const& vf) {
    return select.pfs.empty() || std::ranges::any_of(select.pfs, [&](PfVfs const& vfs) {
               return vfs.pf == vf.pf && vfs.contains(vf.index);
           });
}

std::vector<std::uint16_t> free_vfs(HostView const& host, DesiredState const& desired,
                                    PfState const& pf, VfChoice const& choice) {
    return free_among(pf, vf_uses(host, desired, pf.info.pci), choice);
}

Result<VfState const*> choose_vf(HostView const& host, DesiredState const& desired,
                                 PfState const& pf, VfChoice const& choice) {
    auto const uses = vf_uses(host, desired, pf.info.pci);
    VfState const* chosen = nullptr;
    if (choice.index) {
        VFMGR_TRY(chosen, named_vf(pf, uses, choice));
    } else {
        auto const free = free_among(pf, uses, choice);
        if (free.empty()) return fail(no_free_vf(pf, choice));
        chosen = &*std::ranges::find(pf.vfs, free.front(), &VfState::index);
    }
    if (!chosen->iommu_group)
        return fail(Problem::unsupported,
                    fmt::format("VF {} of {} has no IOMMU group, so it can't be attached to a VM",
                                chosen->index, display_name(pf.info)),
                    "enable the IOMMU: VT-d or AMD-Vi in the firmware, and intel_iommu=on on the "
                    "kernel command line");
    return chosen;
}

}  // namespace vfmgr
