// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/metrics.hpp"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "service/metrics/requests.hpp"

namespace vfmgr::fleet {

struct FleetMetrics::Counted {
    prometheus::Registry registry;
    AnsweredRequests requests{registry};
};

FleetMetrics::FleetMetrics() : counted_(std::make_unique<Counted>()) {
    add_build_info(counted_->registry, "vfmgr-fleetd");
}
FleetMetrics::~FleetMetrics() = default;

void FleetMetrics::answered(Endpoint const* endpoint, std::string const& method, unsigned status) {
    counted_->requests.count(endpoint, method, status);
}

std::string FleetMetrics::text(MetricFamilies const& read) const {
    auto all = counted_->registry.Collect();
    all.insert(all.end(), read.begin(), read.end());
    return prometheus::TextSerializer().Serialize(all);
}

MetricFamilies worker_metrics(Workers::Load const& load) {
    MetricFamilies all;
    auto waiting =
        Family::gauge("vfmgr_fleet_requests_waiting", "Requests that wait for a worker thread.");
    auto running =
        Family::gauge("vfmgr_fleet_requests_running", "Requests that a worker thread answers now.");
    auto refused = Family::counter("vfmgr_fleet_requests_refused_total",
                                   "Requests that found too many waiting.");
    waiting.add({}, load.waiting);
    running.add({}, load.running);
    refused.add({}, load.refused);
    move_all(all, {&waiting, &running, &refused});
    return all;
}

}  // namespace vfmgr::fleet
