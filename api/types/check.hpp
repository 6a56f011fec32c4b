// SPDX-License-Identifier: Apache-2.0
// Results of the checks of a host or a VM: GET /v1/host/checks, vfctl doctor, vf-guest doctor.
// Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

enum class CheckResult {
    failed,          // it can't work this way
    warning,         // it works, but will cause trouble
    unknown,         // can't be read from here: see `detail`
    ok,              //
    not_applicable,  // this machine has nothing of this kind
};

// Side effects of a remedy on others.
enum class BlastRadius {
    none,    // no running program notices
    netdev,  // traffic of one network interface stops for a while
    host,    // every VF and RDMA device of a driver, hence every VM with a VF attached
    reboot,  // everything
};

struct Remedy {
    // To run in this order from a root shell. Empty while VMs must be drained first, and where no
    // command does it (firmware setup, a cable).
    std::vector<std::string> commands;
    BlastRadius blast_radius = BlastRadius::none;
    std::string note{};  // a step without a command: "enable VT-d in the firmware's set-up"
    std::vector<std::string> drain{};  // VMs that hold VFs; commands are shown once there are none
};

// Where a fact was read (a path, a command or a netlink request), and what was there.
struct Evidence {
    std::string source;
    std::string text;
};

struct Finding {
    std::string rule;     // "iommu.enabled"
    std::string subject;  // "0000:3b:00.0", "ens1", "mlx5_0/1"; empty: the machine
    CheckResult result = CheckResult::unknown;
    std::string detail;  // one sentence
    std::vector<Evidence> evidence{};
    std::optional<Remedy> remedy{};  // for failed and warning
    // The finding that explains it: "log.pcie 0000:3b:00.0".
    std::optional<std::string> caused_by{};
};
// Failed or a warning.
[[nodiscard]] bool is_bad(Finding const& finding);

enum class CheckedMachine { host, guest, fleet };

struct CheckReport {
    CheckedMachine machine = CheckedMachine::host;
    Time collected_at{};
    std::string kernel;             // release; empty if unknown
    std::vector<Finding> findings;  // in the rules' order; those that another explains come last
};

// Returns the worst result: `failed` before `warning` before the rest.
[[nodiscard]] CheckResult worst(CheckReport const& report);

extern template struct Json<Finding>;
extern template struct Json<CheckReport>;

}  // namespace vfmgr
