// SPDX-License-Identifier: Apache-2.0
#include "service/metrics.hpp"

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <map>

namespace vfmgr {
namespace {

// They reach from an operation that only observes to one that waits until a guest's driver
// releases a VF.
prometheus::Histogram::BucketBoundaries const operation_seconds{0.1, 0.25, 0.5, 1,  1.5, 2,
                                                                3,   5,    10,  30, 60,  120};
// From a commit on a fast disk to a card's firmware.
prometheus::Histogram::BucketBoundaries const span_seconds{
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

std::string name_of(auto value) {
    return std::string(enum_name(value));
}

}  // namespace

Metrics::Metrics()
    : registry_(std::make_unique<prometheus::Registry>()),
      operations_(prometheus::BuildHistogram()
                      .Name("vfmgr_operation_duration_seconds")
                      .Help("Operations that have ended, from their acceptance to their end.")
                      .Register(*registry_)),
      spans_(prometheus::BuildHistogram()
                 .Name("vfmgr_operation_span_seconds")
                 .Help("What operations spent on each kind of work and wait, in total for each "
                       "operation.")
                 .Register(*registry_)) {
    prometheus::BuildGauge()
        .Name("vfmgr_build_info")
        .Help("The version of the vfmgrd that answers.")
        .Register(*registry_)
        .Add({{"version", VFMGR_VERSION}})
        .Set(1);
}

Metrics::~Metrics() = default;

void Metrics::operation_ended(Operation const& operation) {
    auto const kind = name_of(operation.kind);
    if (operation.finished_at) {
        std::chrono::duration<double> const took = *operation.finished_at - operation.created_at;
        operations_.Add({{"kind", kind}, {"state", name_of(operation.state)}}, operation_seconds)
            .Observe(took.count());
    }
    std::map<SpanKind, double> sums;
    for (auto const& span : operation.spans)
        sums[span.kind] +=
            std::chrono::duration<double>(std::chrono::microseconds(span.took_us)).count();
    for (auto const& [span, seconds] : sums)
        spans_.Add({{"kind", kind}, {"span", name_of(span)}}, span_seconds).Observe(seconds);
}

std::string Metrics::text() const {
    return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace vfmgr
