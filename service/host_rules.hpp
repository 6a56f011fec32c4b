// SPDX-License-Identifier: Apache-2.0
// What root decides about this host, in /etc/vfmgr: the part of the configuration that the broker
// reads as well, and holds vfmgrd to. A value; read once at start.
#pragma once

#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "service/config_paths.hpp"
#include "vfmgr/plan/bounds.hpp"

namespace vfmgr {

struct HostRules {
    std::string libvirt_uri = "qemu:///system";
    std::vector<std::string> trusted_netdevs;  // RDMA links may be created on these
    HostBounds bounds;
    bool operator==(HostRules const&) const = default;
};

// Reads these keys alone: faults of others are vfmgrd's to report.
[[nodiscard]] Result<HostRules> load_host_rules(ConfigPaths const& paths);

}  // namespace vfmgr
