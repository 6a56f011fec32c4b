// SPDX-License-Identifier: Apache-2.0
// The best placement of GPUs by trying all of them: what place_gpus() is judged by.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "vfmgr/plan/placement.hpp"

namespace vfmgr::test {

// How bad a placement is, the most important first: GPUs without a VF; pairs that are unknown, SYS,
// NODE, PHB, PXB; and how many share a PF with how many before them.
using Badness = std::tuple<std::size_t, std::array<std::size_t, 5>, std::size_t>;

inline Badness badness(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics,
                       Placement const& placement) {
    Badness bad{};
    auto& [without, pairs, shared] = bad;
    std::vector<std::size_t> taken(nics.size());
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        if (!placement.at(g)) {
            ++without;
            continue;
        }
        auto const nic = *placement[g];
        auto const there = distance(gpus[g], nics.at(nic).place);
        if (there != PciDistance::pix) ++pairs.at(static_cast<std::size_t>(there));
        shared += taken[nic]++;
    }
    return bad;
}

// Calls `judge` for each placement that the free VFs allow, but not for those that leave a VF free
// and a GPU without.
inline void for_each_placement(std::vector<NearNic> const& nics, std::size_t gpus,
                               std::function<void(Placement const&)> const& judge) {
    std::vector<std::size_t> free;
    std::size_t all = 0;
    for (auto const& nic : nics) {
        free.push_back(nic.free_vfs);
        all += nic.free_vfs;
    }
    Placement placement(gpus);
    std::function<void(std::size_t, std::size_t)> next = [&](std::size_t gpu, std::size_t without) {
        if (gpu == gpus) return judge(placement);
        for (std::size_t n = 0; n < free.size(); ++n) {
            if (free[n] == 0) continue;
            --free[n];
            placement[gpu] = n;
            next(gpu + 1, without);
            ++free[n];
        }
        placement[gpu].reset();
        if (without + all < gpus) next(gpu + 1, without + 1);
    };
    next(0, 0);
}

inline Badness best_of_all(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics) {
    std::optional<Badness> best;
    for_each_placement(nics, gpus.size(), [&](Placement const& one) {
        auto const bad = badness(gpus, nics, one);
        if (!best || bad < *best) best = bad;
    });
    return best.value_or(Badness{});
}

// The same where each NIC has one free VF: by the best of every set of taken NICs, since the number
// of placements grows too fast.
inline Badness best_of_each_set(std::vector<PciPlace> const& gpus,
                                std::vector<NearNic> const& nics) {
    std::vector<std::optional<Badness>> best(std::size_t{1} << nics.size());
    best[0] = Badness{};
    for (auto const& gpu : gpus) {
        auto const before = best;
        for (std::size_t taken = 0; taken < best.size(); ++taken) {
            best[taken] = before[taken];
            if (best[taken]) ++std::get<0>(*best[taken]);
            for (std::size_t n = 0; n < nics.size(); ++n) {
                auto const without = taken & ~(std::size_t{1} << n);
                if (without == taken || !before[without]) continue;
                auto bad = *before[without];
                auto const there = distance(gpu, nics[n].place);
                if (there != PciDistance::pix)
                    ++std::get<1>(bad).at(static_cast<std::size_t>(there));
                if (!best[taken] || bad < *best[taken]) best[taken] = bad;
            }
        }
    }
    std::optional<Badness> all;
    for (auto const& one : best)
        if (one && (!all || *one < *all)) all = one;
    return all.value_or(Badness{});
}

}  // namespace vfmgr::test
