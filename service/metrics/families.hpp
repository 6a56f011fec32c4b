// SPDX-License-Identifier: Apache-2.0
// Series of one metric that are read when somebody scrapes, in prometheus-cpp's types. Values; any
// thread.
#pragma once

#include <prometheus/metric_family.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "api/types/enum_names.hpp"

namespace vfmgr {

using MetricFamilies = std::vector<prometheus::MetricFamily>;
using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

template <class Enum>
[[nodiscard]] std::string label_of(Enum value) {
    return std::string(enum_name(value));
}

// A metric's name has its unit, and a counter's ends in _total (prometheus.io, "Metric and label
// naming").
class Family {
  public:
    [[nodiscard]] static Family gauge(std::string name, std::string help) {
        return Family({std::move(name), std::move(help), prometheus::MetricType::Gauge, {}});
    }
    [[nodiscard]] static Family counter(std::string name, std::string help) {
        return Family({std::move(name), std::move(help), prometheus::MetricType::Counter, {}});
    }

    // Adds one series. Labels differ from those of all others in this family.
    template <class Number>
    void add(MetricLabels labels, Number value) {
        prometheus::ClientMetric series;
        series.label = std::move(labels);
        series.gauge.value = series.counter.value = static_cast<double>(value);
        family_.metric.push_back(std::move(series));
    }
    // One without series is there too: who reads the text finds its name and meaning.
    void move_into(MetricFamilies& all) && { all.push_back(std::move(family_)); }

  private:
    explicit Family(prometheus::MetricFamily family) : family_(std::move(family)) {}
    prometheus::MetricFamily family_;
};

inline void move_all(MetricFamilies& all, std::initializer_list<Family*> families) {
    for (auto* const family : families) std::move(*family).move_into(all);
}

}  // namespace vfmgr
