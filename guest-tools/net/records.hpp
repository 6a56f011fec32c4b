// SPDX-License-Identifier: Apache-2.0
// The records of vf-guest's work: reports for people, metrics for monitoring of the VM. Any thread
// and process; files are replaced as a whole.
#pragma once

#include <string>
#include <vector>

#include "guest-tools/net/report_folder.hpp"
#include "guest-tools/net/state.hpp"

namespace vfmgr::guest {

struct Records {
    ReportFolder reports;
    StateFolder state;
    std::string metrics_file{};  // empty: none
};

// Runs after a verification, whatever requested it: saves its report and writes the metrics.
[[nodiscard]] Result<void> record(Records const& records, VfReport const& report);
// Writes the metrics of all that is configured and kept now. Leaves a file that would not change as
// it is: its time is that of the last change.
[[nodiscard]] Result<void> write_metrics(Records const& records);

}  // namespace vfmgr::guest
