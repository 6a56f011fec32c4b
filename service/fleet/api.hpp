// SPDX-License-Identifier: Apache-2.0
// The fleet's API: its routes, and what they and the gate get from the rest of vfmgr-fleetd.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "service/fleet/audit_ring.hpp"
#include "service/fleet/workers.hpp"
#include "service/metrics/families.hpp"
#include "service/routes/dispatch.hpp"
#include "service/routes/gate.hpp"

namespace vfmgr::fleet {

// Answers a call that the gate has let pass: at once or later, on any thread. It is called on the
// io thread and never blocks; work that may block goes to on_workers().
struct FleetRoute {
    Endpoint endpoint;
    std::function<void(Call const&, http::Respond)> handle;
};
using Answering = std::function<Result<http::Response>(Call const&)>;
// Answers on the io thread, from memory alone. A GET whose ETag the client has is answered 304.
[[nodiscard]] std::function<void(Call const&, http::Respond)> at_once(Answering answer);
// Answers on one of the workers' threads, where it may block until `stop` is requested. `workers`
// outlives it.
using Working = std::function<Result<http::Response>(Call const&, std::stop_token const& stop)>;
[[nodiscard]] std::function<void(Call const&, http::Respond)> on_workers(Workers& workers,
                                                                         Working answer);

// What the rest of the program gives the API. Each function returns at once; any thread calls it.
struct FleetSeams {
    std::function<Access()> access;                       // tokens and tenants, as etcd has them
    std::function<std::vector<std::string>()> not_ready;  // names of what is in the way: "etcd"
    std::function<MetricFamilies()> metrics;              // besides those of requests and workers
    // Of the tokens that were used, by their ids: now and then, and at the stop.
    std::function<void(std::map<std::string, TokenUse> const&)> save_token_uses;
    std::vector<FleetRoute> routes;  // besides those below
    // By what the other replicas are known, which pass requests on; absent: nobody is let in so.
    std::optional<FleetTrust> replicas{};
};

class FleetMetrics;

// What the routes of the program itself are made of. It outlives them.
struct FrontParts {
    Workers& workers;
    AuditRing const& audit;
    FleetMetrics const& metrics;
};
// About this replica: /v1, /livez, /readyz, /metrics, the documents.
[[nodiscard]] std::vector<FleetRoute> service_routes(FrontParts const& parts,
                                                     FleetSeams const& seams);
[[nodiscard]] std::vector<FleetRoute> audit_routes(FrontParts const& parts);
// All, those of `seams` included. The first that fits a request answers it.
[[nodiscard]] std::vector<FleetRoute> all_routes(FrontParts const& parts, FleetSeams const& seams);

// Matches, refuses and answers. `routes` refer to what outlives the handler.
[[nodiscard]] http::Handler fleet_handler(std::vector<FleetRoute> routes, Gate gate);

}  // namespace vfmgr::fleet
