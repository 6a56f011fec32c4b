// SPDX-License-Identifier: Apache-2.0
// What the rules about the kernel's log share. Pure; any thread.
#pragma once

#include <string>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/driver_log.hpp"
#include "vfmgr/machine/machine.hpp"

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

// NICs that the log calls by the name of their driver, or of their class as the kernel finds them.
// What the log says of them is true even where nobody looked at the machine's PCI devices.
[[nodiscard]] std::vector<PciDevice> logged_nics(KernelLog const& log);

// Judges logged_nics(), for a machine whose PCI devices were not read: returns what is wrong with
// them, and that the rest is unknown.
template <class Judge>
[[nodiscard]] std::vector<Finding> judge_logged_nics(Machine const& machine, Judge judge) {
    std::vector<Finding> findings;
    for (auto const& nic : logged_nics(*machine.log()))
        for (auto& finding : judge(nic))
            if (is_bad(finding) || finding.result == CheckResult::unknown)
                findings.push_back(std::move(finding));
    findings.push_back(unknown("", machine.pci().error()));
    return findings;
}

// True for what log.mlx5, or log.pcie, judges.
[[nodiscard]] bool is_judged_by_mlx5_rule(LogLine const& line);
[[nodiscard]] bool is_judged_by_pcie_rule(DeviceLine const& line);

[[nodiscard]] std::vector<Finding> judge_nic_lines(Machine const& machine);   // log.nic
[[nodiscard]] std::vector<Finding> judge_pcie_ports(Machine const& machine);  // log.pcie
[[nodiscard]] std::vector<Finding> judge_crashes(Machine const& machine);     // log.crash

}  // namespace vfmgr::checks
