// SPDX-License-Identifier: Apache-2.0
// Scheduled verifications: what the engine keeps of them, and tells. Control thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/types/time.hpp"

namespace vfmgr {

// What became of a scheduled run, or why there is none.
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
    // Whether vf-guest waits in that VM for something to do.
    std::function<bool(std::string const& vm_uuid)> guest_waits;
    // Once for each end; of what is skipped, once for each reason; of warnings, once for each.
    std::function<void(ScheduledRun const&)> tell;
};

// One scheduled run at a time, and none within a second of the last: two at once would measure each
// other.
struct Schedule {
    struct GoingOn {
        std::string attachment;
        std::string run;
        Deadline deadline;
    };
    std::optional<ScheduleHooks> hooks;  // nullopt: nothing is begun
    std::optional<GoingOn> going_on;
    std::optional<Time> last_begun;
    std::map<std::string, Time> not_before;   // by attachment: begun or skipped since
    std::map<std::string, std::string> told;  // by attachment: why it is skipped
    std::optional<Time> next;                 // what is waited for
};

}  // namespace vfmgr
