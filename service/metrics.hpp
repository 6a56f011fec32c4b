// SPDX-License-Identifier: Apache-2.0
// What vfmgrd counts for Prometheus. Names have their units (seconds), and labels only values of
// enums: their number is bounded, whatever clients send. Any thread.
#pragma once

#include <memory>
#include <string>

#include "api/types/operation.hpp"

namespace prometheus {
class Registry;
class Histogram;
template <class T>
class Family;
}  // namespace prometheus

namespace vfmgr {

class Metrics {
  public:
    Metrics();
    ~Metrics();
    Metrics(Metrics const&) = delete;
    Metrics& operator=(Metrics const&) = delete;

    // How long the operation took, and what its time was spent on.
    void operation_ended(Operation const& operation);

    // Prometheus' text format, version 0.0.4.
    [[nodiscard]] std::string text() const;

  private:
    using Histograms = prometheus::Family<prometheus::Histogram>;
    std::unique_ptr<prometheus::Registry> registry_;
    Histograms& operations_;
    Histograms& spans_;
};

}  // namespace vfmgr
