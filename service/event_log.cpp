// SPDX-License-Identifier: Apache-2.0
#include "service/event_log.hpp"

#include "service/log.hpp"

namespace vfmgr {

void log_event(HistoryEvent const& event) {
    std::string_view message;
    auto severity = Severity::notice;
    if (event.kind == EventKind::lost) {
        message = "a VM has lost its VF";
        severity = Severity::error;
    } else if (event.kind == EventKind::drift) {
        message = "drift";
        severity = Severity::warning;
    } else if (event.kind == EventKind::settled) {
        message = "drift is over";
    } else if (event.kind == EventKind::repaired) {
        message = "drift repaired";
    } else if (event.kind == EventKind::repair_failed) {
        message = "drift can't be repaired";
        severity = Severity::warning;
    } else {
        return;
    }
    log(severity, message,
        {{"pf", to_string(event.pf)},
         {"vf", event.vf ? std::to_string(*event.vf) : ""},
         {"vm", event.vm_name.value_or("")},
         {"attachment", event.attachment.value_or("")},
         {"event", std::to_string(event.number)},
         {"detail", event.detail}});
}

void log_recovered(Operation const& operation) {
    log(Severity::notice, "an operation that was cut short has ended",
        {{"operation", operation.id},
         {"kind", std::string(enum_name(operation.kind))},
         {"subject", operation.subject},
         {"detail", operation.problem ? operation.problem->detail : ""}});
}

}  // namespace vfmgr
