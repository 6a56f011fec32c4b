// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/timing.hpp"

namespace vfmgr {
namespace {

thread_local Stopwatch* of_thread = nullptr;

std::int64_t microseconds(Deadline from, Deadline to) {
    return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

}  // namespace

Stopwatch::Stopwatch(Clock const& clock, Deadline began) : clock_(clock), began_(began) {
    of_thread = this;
}

Stopwatch::~Stopwatch() {
    of_thread = nullptr;
}

std::vector<Span> Stopwatch::spans() {
    return of_thread ? of_thread->spans_ : std::vector<Span>{};
}

Held timed(SpanKind kind, std::string what, std::optional<std::string> step) {
    auto* const watch = of_thread;
    if (!watch || watch->spans_.size() >= spans_max) return {};
    return held([watch, kind, what = std::move(what), step = std::move(step),
                 from = watch->clock_.steady_now()] {
        auto const to = watch->clock_.steady_now();
        watch->spans_.push_back(
            {kind, what, microseconds(watch->began_, from), microseconds(from, to), step});
    });
}

}  // namespace vfmgr
