// SPDX-License-Identifier: Apache-2.0
// This replica's version and health, and the documents of its API.
#include "api/types/daemon.hpp"
#include "api/types/json.hpp"
#include "service/documents/documents.hpp"
#include "service/fleet/api.hpp"
#include "service/fleet/metrics.hpp"
#include "service/metrics/process.hpp"
#include "service/routes/document_answers.hpp"

namespace vfmgr::fleet {
namespace {

Result<http::Response> about(Call const&) {
    return json_response(
        200, About{"vfmgr-fleetd",
                   VFMGR_VERSION,
                   "v1",
                   {"fleet", "hosts", "inventory", "pages", "filters", "tenants", "reservations",
                    "attach"},
                   {"/v1/fleet", "/v1/hosts", "/v1/join-tokens", "/v1/pfs", "/v1/vfs", "/v1/vms",
                    "/v1/attachments", "/v1/verifications", "/v1/networks", "/v1/pools",
                    "/v1/reservations", "/v1/audit", "/v1/openapi.json"}});
}

Result<http::Response> alive(Call const&) {
    return json_response(200, {{"alive", true}});
}

// Strangers may ask, and get names only.
http::Response readiness(std::vector<std::string> const& not_ready) {
    bool const ready = not_ready.empty();
    auto response = json_response(ready ? 200 : 503, {{"ready", ready}, {"not_ready", not_ready}});
    if (!ready) response.headers["Retry-After"] = "5";
    return response;
}

Result<http::Response> show_openapi(Call const&) {
    static auto const response = document_answer(std::string(documents::openapi));
    return response;
}

Result<http::Response> show_problem(Call const& call) {
    return problem_explained(documents::problems, call.ids.at("code"));
}

http::Response metrics_text(FrontParts const& parts, MetricFamilies read) {
    for (auto const& more : {worker_metrics(parts.workers.load())})
        read.insert(read.end(), more.begin(), more.end());
    add_process_metrics(read);
    http::Response response;
    response.body = parts.metrics.text(read);
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
}

}  // namespace

std::vector<FleetRoute> service_routes(FrontParts const& parts, FleetSeams const& seams) {
    auto const ready = [not_ready = seams.not_ready](Call const&) -> Result<http::Response> {
        return readiness(not_ready());
    };
    // The text about a thousand hosts takes a while.
    auto const show_metrics = [parts, metrics = seams.metrics](
                                  Call const&, std::stop_token const&) -> Result<http::Response> {
        return metrics_text(parts, metrics());
    };
    return {
        {{"GET", "/v1", Role::viewer, {}, for_tenants_too}, at_once(about)},
        {{"GET", "/livez", anyone}, at_once(alive)},
        {{"GET", "/readyz", anyone}, at_once(ready)},
        {{"GET", "/metrics", Role::viewer}, on_workers(parts.workers, show_metrics)},
        {{"GET", "/v1/openapi.json", Role::viewer, {}, for_tenants_too}, at_once(show_openapi)},
        // A problem is explained to anyone: who has no token yet gets one, too.
        {{"GET", "/v1/problems/{code}", anyone}, at_once(show_problem)},
    };
}

}  // namespace vfmgr::fleet
