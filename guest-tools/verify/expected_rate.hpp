// SPDX-License-Identifier: Apache-2.0
// The rate that a path can carry at most, and which part of it sets that limit: a figure alone
// does not say whether it is good. Pure but for read_path(); any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "api/types/verification.hpp"

namespace vfmgr::verify {

struct PcieLink {
    double gigatransfers_per_s = 0;  // of each lane
    unsigned lanes = 0;
    bool operator==(PcieLink const&) const = default;
};

// As far as it is known.
struct PathFacts {
    std::optional<TestPath> path;
    std::optional<std::uint32_t> port_mbps;  // absent: no link, or the driver does not say
    std::optional<PcieLink> pcie;            // what the NIC has now, not what it could
    std::uint32_t vf_mbps = 0;               // the VF's max_tx_rate; 0: no limit
    std::uint32_t path_mtu = 1024;           // of RDMA, in bytes
    bool software = false;                   // SoftRoCE or siw: the CPUs are the limit
    bool operator==(PathFacts const&) const = default;
};

// What the netdev, or the one below it, says in sysfs: speed, current_link_speed and
// current_link_width. The rest is left as it is.
[[nodiscard]] PathFacts read_path(std::string const& ifname,
                                  std::filesystem::path const& sysfs = "/sys");

// As the VF sees it: what it sends, what it gets, or both at once.
enum class Flow { out, in, both };

struct Limit {
    double mbps = 0;   // of payload
    std::string what;  // "the VF's rate limit of 500 Mbit/s"
};
// The least of what is known; nullopt when nothing is.
[[nodiscard]] std::optional<Limit> expected_rate(PathFacts const& facts, Flow flow);

// Adds achievable_mbps and achieved_percent to a bandwidth test that passed, and says in its detail
// what the limit is. A warning when hardware stays below 80 % of it, or when a VF is faster than
// its rate limit lets it be.
[[nodiscard]] std::optional<Warning> compare_rate(TestResult& test, PathFacts const& facts);

}  // namespace vfmgr::verify
