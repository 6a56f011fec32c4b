// SPDX-License-Identifier: Apache-2.0
// State and reports of scheduled verifications. Control thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/types/time.hpp"

namespace vfmgr {

// The outcome of a scheduled run, or why there is none.
struct ScheduledRun {
    enum class End { passed, warned, failed, skipped };
    End end = End::passed;
    std::string attachment;
    std::string vm;
    std::string detail;
    std::string remedy;
};

// Both are called on the control thread and return at once.
struct ScheduleHooks {
    // True when vf-guest in that VM waits for work.
    std::function<bool(std::string const& guest)> guest_waits;  // by guest_key()
    // Called once for each end; for a skipped run, once for each reason; for warnings, once for
    // each.
    std::function<void(ScheduledRun const&)> report;
};

// Runs one scheduled verification at a time, and none within a second of the last: two at once
// would measure each other.
struct Schedule {
    struct GoingOn {
        std::string attachment;
        std::string run;
        Deadline deadline;
    };
    std::optional<ScheduleHooks> hooks;  // nullopt: nothing is begun
    std::optional<GoingOn> going_on;
    std::optional<Time> last_begun;
    std::map<std::string, Time> not_before;       // by attachment, after a run was begun or skipped
    std::map<std::string, std::string> reported;  // by attachment: the reason for skipping
    std::optional<Time> next;                     // when the next run is due
};

}  // namespace vfmgr
