// SPDX-License-Identifier: Apache-2.0
#include "service/event_log.hpp"

#include "service/log.hpp"

namespace vfmgr {
namespace {

struct Line {
    Severity severity;
    std::string_view message;
};

std::optional<Line> line_of(EventKind kind) {
    switch (kind) {
        case EventKind::lost:
            return Line{Severity::error, "a VM has lost its VF"};
        case EventKind::drift:
            return Line{Severity::warning, "drift"};
        case EventKind::settled:
            return Line{Severity::notice, "drift is over"};
        case EventKind::repaired:
            return Line{Severity::notice, "drift repaired"};
        case EventKind::repair_failed:
            return Line{Severity::warning, "drift can't be repaired"};
        case EventKind::pf_stuck:
        case EventKind::pci_busy:
            return Line{Severity::error, "a PF is stuck"};
        case EventKind::pf_answers:
        case EventKind::pci_free:
            return Line{Severity::notice, "a PF is no longer stuck"};
        case EventKind::fleet_joined:
            return Line{Severity::notice, "this host is in a fleet"};
        case EventKind::fleet_left:
            return Line{Severity::notice, "this host is in no fleet"};
        case EventKind::libvirt_lost:
            return Line{Severity::warning, "libvirt can't be queried"};
        case EventKind::libvirt_found:
            return Line{Severity::notice, "libvirt can be queried again"};
        case EventKind::store_read_only:
            return Line{Severity::error, "the store can't be written"};
        case EventKind::store_writable:
            return Line{Severity::notice, "the store can be written again"};
        default:
            return std::nullopt;
    }
}

void log_event(Event const& event) {
    auto const line = line_of(event.kind);
    if (!line) return;
    log(line->severity, line->message,
        {{"pf", event.pf ? to_string(*event.pf) : ""},
         {"vf", event.vf ? std::to_string(*event.vf) : ""},
         {"vm", event.vm.value_or("")},
         {"attachment", event.attachment.value_or("")},
         {"event", std::to_string(event.number)},
         {"detail", event.detail}});
}

}  // namespace

void log_events(std::vector<Event> const& events) {
    for (auto const& event : events) log_event(event);
}

void log_recovered(Operation const& operation) {
    log(Severity::notice, "recovery ended an operation that was cut short",
        {{"operation", operation.id},
         {"kind", std::string(enum_name(operation.kind))},
         {"subject", operation.subject},
         {"detail", operation.problem ? operation.problem->detail : ""}});
}

void log_operation(Operation const& operation) {
    bool const well = operation.state == OperationState::succeeded;
    log(well ? Severity::info : Severity::warning, "operation",
        {{"operation", operation.id},
         {"kind", std::string(enum_name(operation.kind))},
         {"subject", operation.subject},
         {"state", std::string(enum_name(operation.state))},
         {"who", operation.requested_by},
         {"request_id", operation.request_id},
         {"detail", operation.problem ? operation.problem->detail : ""}});
}

}  // namespace vfmgr
