// SPDX-License-Identifier: Apache-2.0
// What the rules about the kernel's log share. Pure; any thread.
#pragma once

#include <string>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/driver_log.hpp"

namespace vfmgr::checks {

// Complaints of one kind and one device: the first line, and their number.
struct Complaint {
    LogLine const* line = nullptr;
    int lines = 0;

    void add(LogLine const& one) {
        if (!line) line = &one;
        ++lines;
    }
    void add(Complaint const& more) {
        if (!line || (more.line && more.line < line)) line = more.line;
        lines += more.lines;
    }
};
[[nodiscard]] std::string counted(Complaint const& complaint);  // " (3 times)"; empty for one

// True for what log.mlx5 judges.
[[nodiscard]] bool is_judged_by_mlx5_rule(LogLine const& line);

[[nodiscard]] std::vector<Finding> judge_nic_lines(Machine const& machine);   // log.nic
[[nodiscard]] std::vector<Finding> judge_pcie_ports(Machine const& machine);  // log.pcie
[[nodiscard]] std::vector<Finding> judge_crashes(Machine const& machine);     // log.crash

}  // namespace vfmgr::checks
