// SPDX-License-Identifier: Apache-2.0
// The highest rate that a path can carry, and the part of the path that sets it: a figure alone
// does not show whether it is good. Pure except read_path(); any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "api/types/verification.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/reachability.hpp"

namespace vfmgr::verify {

struct PcieLink {
    double gigatransfers_per_s = 0;  // per lane
    unsigned lanes = 0;
    bool operator==(PcieLink const&) const = default;
};

// What is known of the path.
struct PathFacts {
    std::optional<TestPath> path;
    std::optional<std::uint32_t> port_mbps;  // absent: no link, or the driver does not report it
    std::optional<PcieLink> pcie;            // the NIC's current link, not its capability
    std::uint32_t vf_mbps = 0;               // the VF's max_tx_rate; 0: no limit
    std::uint32_t path_mtu = 1024;           // of RDMA, in bytes
    bool software = false;                   // SoftRoCE or siw: the CPUs are the limit
    bool operator==(PathFacts const&) const = default;
};

// Reads speed, current_link_speed and current_link_width in sysfs, from the netdev or the one below
// it. Leaves the rest at its defaults.
[[nodiscard]] PathFacts read_path(std::string const& ifname,
                                  std::filesystem::path const& sysfs = "/sys");

// From the VF's side: what it sends, what it receives, or both at once.
enum class Flow { out, in, both };

struct Limit {
    double mbps = 0;   // of payload
    std::string what;  // "the VF's rate limit (500 Mbit/s)"
};
// The lowest of the known limits; nullopt when none is known.
[[nodiscard]] std::optional<Limit> expected_rate(PathFacts const& facts, Flow flow);

// Adds achievable_mbps and achieved_percent to a test of bandwidth that passed, and names the limit
// in its detail. Warns when hardware stays below 80 % of it, or when a VF exceeds its rate limit.
[[nodiscard]] std::optional<Warning> compare_rate(TestResult& test, Flow flow,
                                                  PathFacts const& facts);

// Bandwidth as perftest measures it: `depth` messages outstanding on each queue pair, from the
// first post to the last completion. One thread.

[[nodiscard]] Result<Measured> bandwidth(GuestStream& stream, Load const& load, Deadline deadline,
                                         ibv_wr_opcode opcode);
// Half of the queue pairs write while the other half read. Their number is even.
[[nodiscard]] Result<Measured> bidirectional_bandwidth(GuestStream& stream, Load const& load,
                                                       Deadline deadline);

}  // namespace vfmgr::verify
