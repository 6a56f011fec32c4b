// SPDX-License-Identifier: Apache-2.0
#include "service/metrics/counted.hpp"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <map>

#include "service/metrics/requests.hpp"

namespace vfmgr {
namespace {

// They reach from an operation that only observes to one that waits until a guest's driver
// releases a VF.
prometheus::Histogram::BucketBoundaries const operation_seconds{0.1, 0.25, 0.5, 1,  1.5, 2,
                                                                3,   5,    10,  30, 60,  120};
// From a commit on a fast disk to a card's firmware.
prometheus::Histogram::BucketBoundaries const span_seconds{
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

double seconds_of(Span const& span) {
    return std::chrono::duration<double>(std::chrono::microseconds(span.took_us)).count();
}

template <class Builder, class Registry>
auto& registered(Builder builder, char const* name, char const* help, Registry& registry) {
    return builder.Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Counted {
    using Histograms = prometheus::Family<prometheus::Histogram>;
    using Counters = prometheus::Family<prometheus::Counter>;

    Counted();

    prometheus::Registry registry;
    Histograms& operations;
    Histograms& spans;
    Histograms& steps;
    Counters& ended;
    Counters& events;
    Counters& verifications;
    AnsweredRequests requests;
};

Metrics::Counted::Counted()
    : operations(registered(prometheus::BuildHistogram(), "vfmgr_operation_duration_seconds",
                            "Operations that have ended, from their acceptance to their end.",
                            registry)),
      spans(registered(prometheus::BuildHistogram(), "vfmgr_operation_span_seconds",
                       "What operations spent on each kind of work and wait, in total for each "
                       "operation.",
                       registry)),
      steps(registered(prometheus::BuildHistogram(), "vfmgr_step_duration_seconds",
                       "Each step of operations that have ended, and each step's undo.", registry)),
      ended(registered(prometheus::BuildCounter(), "vfmgr_operations_total",
                       "Operations that have ended, by kind and how.", registry)),
      events(registered(prometheus::BuildCounter(), "vfmgr_events_total", "Events, by kind.",
                        registry)),
      verifications(registered(prometheus::BuildCounter(), "vfmgr_verifications_total",
                               "Verifications that have ended, by verdict.", registry)),
      requests(registry) {
    add_build_info(registry, "vfmgrd");
    // From the start, or the first failure would be no increase.
    for (auto const& [kind, name] : enum_names<OperationKind>)
        for (auto const state : {OperationState::succeeded, OperationState::failed})
            ended.Add({{"kind", std::string(name)}, {"state", label_of(state)}});
    for (auto const verdict : {Verdict::pass, Verdict::fail})
        verifications.Add({{"verdict", label_of(verdict)}});
}

Metrics::Metrics() : counted_(std::make_unique<Counted>()) {}
Metrics::~Metrics() = default;

void Metrics::operation_ended(Operation const& operation) {
    auto const kind = label_of(operation.kind);
    counted_->ended.Add({{"kind", kind}, {"state", label_of(operation.state)}}).Increment();
    if (operation.finished_at) {
        std::chrono::duration<double> const took = *operation.finished_at - operation.created_at;
        counted_->operations
            .Add({{"kind", kind}, {"state", label_of(operation.state)}}, operation_seconds)
            .Observe(took.count());
    }
    std::map<SpanKind, double> sums;
    for (auto const& span : operation.spans) {
        sums[span.kind] += seconds_of(span);
        if (span.step)
            counted_->steps
                .Add({{"step", *span.step},
                      {"undo", span.kind == SpanKind::undo ? "true" : "false"}},
                     span_seconds)
                .Observe(seconds_of(span));
    }
    for (auto const& [span, seconds] : sums)
        counted_->spans.Add({{"kind", kind}, {"span", label_of(span)}}, span_seconds)
            .Observe(seconds);
}

void Metrics::emitted(std::vector<Event> const& events) {
    for (auto const& event : events) {
        counted_->events.Add({{"kind", label_of(event.kind)}}).Increment();
        if (event.kind == EventKind::verified && event.verdict)
            counted_->verifications.Add({{"verdict", label_of(*event.verdict)}}).Increment();
    }
}

void Metrics::answered(Endpoint const* endpoint, std::string const& method, unsigned status) {
    counted_->requests.count(endpoint, method, status);
}

Result<std::string> Metrics::text(MetricFamilies const& read) const {
    auto all = counted_->registry.Collect();
    all.insert(all.end(), read.begin(), read.end());
    return prometheus::TextSerializer().Serialize(all);
}

}  // namespace vfmgr
