// SPDX-License-Identifier: Apache-2.0
// What vfmgrd counts for Prometheus since it started. Names have their units (seconds), and labels
// only values of enums and the API's own routes: their number is bounded, whatever clients send.
// Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/types/event.hpp"
#include "api/types/operation.hpp"
#include "service/metrics/families.hpp"

namespace prometheus {
class Counter;
class Histogram;
class Registry;
template <class T>
class Family;
}  // namespace prometheus

namespace vfmgr {

struct Route;

class Metrics {
  public:
    Metrics();
    ~Metrics();
    Metrics(Metrics const&) = delete;
    Metrics& operator=(Metrics const&) = delete;

    // How long the operation took, what its time was spent on, and each step's share.
    void operation_ended(Operation const& operation);
    void emitted(std::vector<Event> const& events);
    // `route` is null where there is none for the path and the method. It outlives this.
    void answered(Route const* route, std::string const& method, unsigned status);

    // Prometheus' text format, version 0.0.4: what is counted, and these.
    [[nodiscard]] std::string text(MetricFamilies const& read) const;

  private:
    using Histograms = prometheus::Family<prometheus::Histogram>;
    using Counters = prometheus::Family<prometheus::Counter>;
    std::unique_ptr<prometheus::Registry> registry_;
    Histograms& operations_;
    Histograms& spans_;
    Histograms& steps_;
    Counters& ended_;
    Counters& events_;
    Counters& verifications_;
    Counters& requests_;
    // prometheus-cpp looks a series up by all of its labels, and every request would wait for that.
    std::mutex mutex_;
    std::map<std::pair<Route const*, unsigned>, prometheus::Counter*> by_route_;  // mutex_
};

}  // namespace vfmgr
