// SPDX-License-Identifier: Apache-2.0
// What vfmgrd counts for Prometheus since it started. Names have their units (seconds), and labels
// only values of enums and the API's own routes: their number is bounded, whatever clients send.
// Any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/types/event.hpp"
#include "api/types/operation.hpp"
#include "service/metrics/families.hpp"

namespace vfmgr {

struct Endpoint;

class Metrics {
  public:
    Metrics();
    ~Metrics();
    Metrics(Metrics const&) = delete;
    Metrics& operator=(Metrics const&) = delete;

    // How long the operation took, what its time was spent on, and each step's share.
    void operation_ended(Operation const& operation);
    void emitted(std::vector<Event> const& events);
    // `endpoint` is null where there is none for the path and the method. It outlives this.
    void answered(Endpoint const* endpoint, std::string const& method, unsigned status);

    // Prometheus' text format, version 0.0.4: what is counted, and these. unsupported in a program
    // that is built without prometheus-cpp (portable/uncounted.cpp).
    [[nodiscard]] Result<std::string> text(MetricFamilies const& read) const;

  private:
    struct Counted;
    std::unique_ptr<Counted> counted_;
};

}  // namespace vfmgr
