// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/schedule/near_rails.hpp"

#include <limits>

namespace vfmgr::fleet {
namespace {

using Cost = std::int64_t;
constexpr Cost no_way = std::numeric_limits<Cost>::max() / 4;
constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

// The cheapest flow from GPUs to slots, by successive shortest paths: each path adds one pair, and
// may move earlier GPUs to other slots. The choice after each path is the cheapest of that size.
class Pairing {
  public:
    Pairing(std::vector<PciPlace const*> const& gpus, std::vector<Slot> const& slots,
            PciDistance within, std::size_t count)
        : slots_(slots),
          gpus_(gpus.size()),
          pairs_(gpus.size() * slots.size()),
          slot_of_(gpus.size(), nowhere),
          used_(slots.size()) {
        // One pair further apart costs more than all pairs that are nearer, and any such step
        // more than all sharing of slots.
        auto const base = static_cast<Cost>(count) + 1;
        for (std::size_t g = 0; g < gpus_; ++g)
            for (std::size_t s = 0; s < slots_.size(); ++s)
                pairs_[g * slots_.size() + s] = nearest(*gpus[g], slots_[s], within, base);
        while (size_ < count && add_pair()) ++size_;
    }

    [[nodiscard]] NearRails result() const {
        NearRails near;
        for (std::size_t g = 0; g < gpus_; ++g) {
            if (slot_of_[g] != nowhere) {
                auto const& pair = at(g, slot_of_[g]);
                near.pairs.push_back({g, slot_of_[g], pair.pf, pair.distance});
            } else if (!near.without && reaches_none(g)) {
                near.without = g;
            }
        }
        return near;
    }

  private:
    struct Pair {
        Cost cost = no_way;
        std::size_t pf = 0;
        PciDistance distance = PciDistance::unknown;
    };

    [[nodiscard]] static Cost cost_of(PciDistance distance, Cost base) {
        Cost cost = 0;
        auto const classes = static_cast<int>(PciDistance::pix) - static_cast<int>(distance);
        for (int i = 0; i < classes; ++i) cost = i == 0 ? 2 * base * base : cost * base;
        return cost;
    }

    [[nodiscard]] static Pair nearest(PciPlace const& gpu, Slot const& slot, PciDistance within,
                                      Cost base) {
        Pair best;
        if (slot.vfs == 0) return best;
        for (std::size_t p = 0; p < slot.pfs.size(); ++p) {
            auto const apart = distance(gpu, *slot.pfs[p]);
            if (apart < within || (best.cost != no_way && apart <= best.distance)) continue;
            best = {cost_of(apart, base), p, apart};
        }
        return best;
    }

    [[nodiscard]] Pair const& at(std::size_t gpu, std::size_t slot) const {
        return pairs_[gpu * slots_.size() + slot];
    }
    [[nodiscard]] bool reaches_none(std::size_t gpu) const {
        for (std::size_t s = 0; s < slots_.size(); ++s)
            if (at(gpu, s).cost != no_way) return false;
        return true;
    }

    // The cheapest way to a slot, and the GPU that takes it there.
    struct Way {
        Cost cost = no_way;
        std::size_t gpu = nowhere;
    };

    bool shorten(std::vector<Way>& ways, std::size_t gpu, Cost before) const {
        bool shorter = false;
        for (std::size_t s = 0; s < slots_.size(); ++s) {
            auto const& pair = at(gpu, s);
            if (pair.cost == no_way || s == slot_of_[gpu] || before + pair.cost >= ways[s].cost)
                continue;
            ways[s] = {before + pair.cost, gpu};
            shorter = true;
        }
        return shorter;
    }

    // There is no negative circle, so this ends.
    void find_ways(std::vector<Way>& ways) const {
        ways.assign(slots_.size(), {});
        for (std::size_t g = 0; g < gpus_; ++g)
            if (slot_of_[g] == nowhere) shorten(ways, g, 0);
        for (bool again = true; again;) {
            again = false;
            for (std::size_t g = 0; g < gpus_; ++g) {
                auto const from = slot_of_[g];
                if (from == nowhere || ways[from].cost == no_way) continue;
                again = shorten(ways, g, ways[from].cost - at(g, from).cost) || again;
            }
        }
    }

    bool add_pair() {
        find_ways(ways_);
        auto const& found = ways_;
        std::size_t best = nowhere;
        Cost cost = no_way;
        for (std::size_t s = 0; s < slots_.size(); ++s) {
            if (found[s].cost == no_way || used_[s] == slots_[s].vfs) continue;
            if (found[s].cost + used_[s] >= cost) continue;
            best = s;
            cost = found[s].cost + used_[s];
        }
        if (best == nowhere) return false;
        ++used_[best];
        for (auto slot = best; slot != nowhere;) {
            auto const gpu = found[slot].gpu;
            auto const from = slot_of_[gpu];
            slot_of_[gpu] = slot;
            slot = from;
        }
        return true;
    }

    std::vector<Slot> const& slots_;
    std::size_t const gpus_;
    std::vector<Pair> pairs_;  // of all GPUs and slots
    std::vector<std::size_t> slot_of_;
    std::vector<std::uint16_t> used_;
    std::vector<Way> ways_;  // kept, since there is a search for each pair
    std::size_t size_ = 0;
};

}  // namespace

NearRails near_rails(std::vector<PciPlace const*> const& gpus, std::vector<Slot> const& slots,
                     PciDistance within, std::size_t count) {
    return Pairing(gpus, slots, within, count).result();
}

Distances distances_of(NearRails const& near) {
    Distances counts{};
    for (auto const& pair : near.pairs) ++counts.at(static_cast<std::size_t>(pair.distance));
    return counts;
}

}  // namespace vfmgr::fleet
