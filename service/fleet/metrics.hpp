// SPDX-License-Identifier: Apache-2.0
// What vfmgr-fleetd counts for Prometheus since it started. Any thread.
#pragma once

#include <memory>
#include <string>

#include "service/fleet/hosts/followers.hpp"
#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/state.hpp"
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

// What a replica knows of the fleet. The number of series does not grow with hosts beyond
// named_hosts_max.
struct KnownFleet {
    State const& state;
    InventoryView const& inventory;
    Reaches const& reaches;
    std::string replica;  // the name of this one
    Time now{};
};
inline constexpr std::size_t named_hosts_max = 64;  // those that are unreachable for longest
[[nodiscard]] MetricFamilies fleet_metrics(KnownFleet const& fleet);

}  // namespace vfmgr::fleet
