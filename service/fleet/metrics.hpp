// SPDX-License-Identifier: Apache-2.0
// What vfmgr-fleetd counts for Prometheus since it started. Any thread.
#pragma once

#include <memory>
#include <string>

#include "service/fleet/workers.hpp"
#include "service/metrics/families.hpp"

namespace vfmgr {
struct Endpoint;
}

namespace vfmgr::fleet {

class FleetMetrics {
  public:
    FleetMetrics();
    ~FleetMetrics();
    FleetMetrics(FleetMetrics const&) = delete;
    FleetMetrics& operator=(FleetMetrics const&) = delete;

    // `endpoint` is null where there is none for the path and the method. It outlives this.
    void answered(Endpoint const* endpoint, std::string const& method, unsigned status);
    // Prometheus' text format, version 0.0.4: what is counted, and these.
    [[nodiscard]] std::string text(MetricFamilies const& read) const;

  private:
    struct Counted;
    std::unique_ptr<Counted> counted_;
};

[[nodiscard]] MetricFamilies worker_metrics(Workers::Load const& load);

}  // namespace vfmgr::fleet
