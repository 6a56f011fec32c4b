// SPDX-License-Identifier: Apache-2.0
// What vf-guest leaves behind of its work: reports for people, metrics for who watches the VM. Any
// thread and process; files are replaced as a whole.
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

// After a verification, whoever wanted it: keeps its report and writes the metrics.
[[nodiscard]] Result<void> record(Records const& records, VfReport const& report);
// The metrics of all that is configured and kept now. A file that says so already stays as it is,
// so that its time is that of the last change.
[[nodiscard]] Result<void> write_metrics(Records const& records);

}  // namespace vfmgr::guest
