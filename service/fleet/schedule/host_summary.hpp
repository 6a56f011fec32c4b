// SPDX-License-Identifier: Apache-2.0
// What the scheduler has to know of a host, made from what the host reported last. Values; any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/network.hpp"
#include "api/types/time.hpp"
#include "api/types/topology.hpp"

namespace vfmgr::fleet {

// Only an active host gets anything new. unreachable: not heard from; fenced: known to be off.
enum class HostState { active, cordoned, quarantined, unreachable, fenced };

// A pool that selects VFs of a PF.
struct PoolPart {
    std::string pool;
    std::uint16_t free_vfs = 0;  // of this PF that the pool holds; in no reservation
    bool operator==(PoolPart const&) const = default;
};

struct RailPf {
    PciPlace place;    // its address is the PF's
    std::string rail;  // rail_of()
    LinkLayer link_layer = LinkLayer::ethernet;
    bool link_up = true;
    std::uint16_t free_vfs = 0;         // in no reservation
    std::vector<std::string> networks;  // that it carries
    std::vector<PoolPart> pools;
    bool operator==(RailPf const&) const = default;
};

struct HostGpu {
    PciPlace place;
    bool free = true;  // no VM has it, running or as it will start
    bool operator==(HostGpu const&) const = default;
};

// What is left to be chosen from the host's blocks. Absent: the host chooses freely.
struct IdentitiesLeft {
    std::optional<std::uint64_t> macs;
    std::optional<std::uint64_t> guids;
    std::map<std::string, std::uint64_t> addresses;  // by network
    bool operator==(IdentitiesLeft const&) const = default;
};

struct HostSummary {
    std::string name;
    std::string rack;  // empty: none is recorded
    std::map<std::string, std::string> labels;
    HostState state = HostState::active;
    std::string state_reason;         // who said so and why; empty: nobody did
    std::optional<Time> state_since;  // absent: not known
    std::vector<RailPf> rails;        // by address
    std::vector<HostGpu> gpus;        // by address
    std::map<std::string, std::vector<PciAddress>> partitions;  // NVSwitch partitions: their GPUs
    std::uint32_t vfs = 0;                                      // of all PFs that are managed
    std::uint32_t used = 0;  // attached, reserved, in quarantine or otherwise in use
    IdentitiesLeft left;
    Time as_of{};        // when the host last reported
    bool stale = false;  // its stream is interrupted: the rest may be old
    bool operator==(HostSummary const&) const = default;
};

// The name of a PF's rail: its label "rail"; without one, its place in the first network by name
// that it carries, as "train/3"; without that, its address.
[[nodiscard]] std::string rail_of(std::map<std::string, std::string> const& labels,
                                  std::vector<Network> const& networks, PciAddress const& pf);

}  // namespace vfmgr::fleet
