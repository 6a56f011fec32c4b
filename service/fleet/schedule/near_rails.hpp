// SPDX-License-Identifier: Apache-2.0
// Which rails' VFs go with which GPUs of a host. The order of vfmgr/plan/placement.hpp, with three
// differences: PFs of one rail can share a limit, pairs that are too far apart are no pairs, and
// only some of the GPUs need a VF. It takes microseconds, since it is asked for each host. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/types/topology.hpp"

namespace vfmgr::fleet {

// A PF, or all PFs of a rail: no more than `vfs` VFs can be had of them together.
struct Slot {
    std::vector<PciPlace const*> pfs;  // never nullptr; best first where they are equally near
    std::uint16_t vfs = 0;
};

struct NearPair {
    std::size_t gpu = 0;   // its number in the list
    std::size_t slot = 0;  // the same
    std::size_t pf = 0;    // its number in the slot
    PciDistance distance = PciDistance::unknown;
    bool operator==(NearPair const&) const = default;
};

// The number of pairs of each distance, PciDistance::unknown first. Less is better.
using Distances = std::array<std::uint16_t, 6>;

struct NearRails {
    std::vector<NearPair> pairs;         // by GPU; fewer than requested: there are no more
    std::optional<std::size_t> without;  // a GPU that has no VF within the limit at all
};

// As many pairs as possible, up to `count`; then as few as possible are SYS, NODE, PHB, PXB; then
// as few GPUs as possible share a slot. Equal input gives an equal choice.
[[nodiscard]] NearRails near_rails(std::vector<PciPlace const*> const& gpus,
                                   std::vector<Slot> const& slots, PciDistance within,
                                   std::size_t count);

[[nodiscard]] Distances distances_of(NearRails const& near);

}  // namespace vfmgr::fleet
