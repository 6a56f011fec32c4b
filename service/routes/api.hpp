// SPDX-License-Identifier: Apache-2.0
// The routes of /v1, one file per noun, and the console's files. Handlers parse and answer; the
// engine does the work.
#pragma once

#include <vector>

#include "service/auth/sessions.hpp"
#include "service/auth/token_uses.hpp"
#include "service/console.hpp"
#include "service/event_streams.hpp"
#include "service/fleet_access.hpp"
#include "service/guest/link.hpp"
#include "service/host_checks.hpp"
#include "service/metrics/counted.hpp"
#include "service/metrics/load.hpp"
#include "service/routes/router.hpp"

namespace vfmgr {

// The arguments outlive the routes.
[[nodiscard]] std::vector<Route> root_routes();
[[nodiscard]] std::vector<Route> document_routes();
// What /metrics is made of, besides what is published.
struct Measured {
    Metrics const& counted;
    TrafficQuery& traffic;
    std::function<ServiceLoad()> load;  // called on the thread that reads the traffic
};
[[nodiscard]] std::vector<Route> metrics_routes(Measured measured);
[[nodiscard]] std::vector<Route> host_routes(HostChecks& checks, TrafficQuery& traffic);
[[nodiscard]] std::vector<Route> pf_routes(Engine& engine);
[[nodiscard]] std::vector<Route> firmware_routes(Engine& engine, FirmwareQuery& query);
[[nodiscard]] std::vector<Route> network_routes();
[[nodiscard]] std::vector<Route> pool_routes();
[[nodiscard]] std::vector<Route> tenant_routes();
[[nodiscard]] std::vector<Route> desired_routes();
struct FleetSeams {
    Engine& engine;
    FleetAccess& fleet;
    bool serves_tls = false;
};
[[nodiscard]] std::vector<Route> fleet_routes(FleetSeams seams);
[[nodiscard]] std::vector<Route> vm_routes();
[[nodiscard]] std::vector<Route> attachment_routes(Engine& engine);
[[nodiscard]] std::vector<Route> interop_routes(guestd::Link& guests);
struct EnrolmentSeams {
    Engine& engine;
    guestd::Link const& guests;
    Clock& clock;
};
[[nodiscard]] std::vector<Route> enrolment_routes(EnrolmentSeams seams);
[[nodiscard]] std::vector<Route> rdma_link_routes(Engine const& engine);
[[nodiscard]] std::vector<Route> operation_routes(Engine& engine);
[[nodiscard]] std::vector<Route> console_routes(ConsoleQuery& query);
[[nodiscard]] std::vector<Route> event_routes(EventStreams const& streams);
[[nodiscard]] std::vector<Route> audit_routes(Engine& engine);
struct SessionSeams {
    Engine& engine;
    Clock& clock;
    Sessions& sessions;
};
[[nodiscard]] std::vector<Route> session_routes(SessionSeams seams);
// `nouns` are those of all other routes: scopes may name them, and tokens.
struct TokenSeams {
    Engine& engine;
    Clock& clock;
    TokenUses const& uses;
    std::vector<std::string> nouns;
};
[[nodiscard]] std::vector<Route> token_routes(TokenSeams seams);

}  // namespace vfmgr
