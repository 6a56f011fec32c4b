// SPDX-License-Identifier: Apache-2.0
#include "service/event_log.hpp"

#include "service/log.hpp"
#include "service/rate_limit.hpp"
#include "service/routes/router.hpp"

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
         {"vm", event.vm.value_or("")},
         {"attachment", event.attachment.value_or("")},
         {"event", std::to_string(event.number)},
         {"detail", event.detail}});
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

std::function<void(http::Peer const&, Error const&)> report_turned_away(
    std::shared_ptr<AuditTrail> trail, Clock& clock) {
    RateLimit const lines{.burst = 3, .per_second = 0.1};
    return [limiter = std::make_shared<RateLimiter<std::string>>(lines), trail = std::move(trail),
            &clock](http::Peer const& peer, Error const& why) {
        auto const who = stranger_name(peer);
        if (why.problem == Problem::unauthorized)
            trail->count({clock.now(), who, "", "TLS handshake", "", "401", true});
        if (limiter->take(who, clock.steady_now()))
            log(Severity::warning, "connection refused", {{"who", who}, {"detail", why.detail}});
    };
}

}  // namespace vfmgr
