// SPDX-License-Identifier: Apache-2.0
#include "service/recent_events.hpp"

#include <algorithm>

#include "api/http/sse.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t write_bytes = 64 * 1024;

}  // namespace

bool EventFilter::matches(Event const& event) const {
    auto const is = [](auto const& wanted, auto const& actual) {
        return !wanted || actual == wanted;
    };
    return is(pf, event.pf) && is(attachment, event.attachment) &&
           (is(vm, event.vm) || is(vm, event.vm_uuid)) && is(network, event.network) &&
           is(pool, event.pool) && is(reservation, event.reservation) && is(tenant, event.tenant) &&
           (kinds.empty() || std::ranges::find(kinds, event.kind) != kinds.end());
}

http::Frame frame_of(Event const& event) {
    std::string data;
    append_json(data, event);
    return std::make_shared<std::string const>(http::sse_event(event.number, "", data));
}

http::Frame frame_for(EventFilter const& filter, Event const& event, http::Frame const& whole) {
    if (!filter.matches(event)) return {};
    auto const seen = filter.viewer ? seen_by(filter.viewer->tenant, event) : std::optional(event);
    if (!seen) return {};
    return whole && *seen == event ? whole : frame_of(*seen);
}

RecentEvents::RecentEvents(RecentLimits limits, EventPage const& tail)
    : limits_(limits),
      base_(std::max<std::uint64_t>(tail.pruned,
                                    tail.last - std::min<std::uint64_t>(tail.last, limits.events))),
      last_(base_) {
    append(tail.events);
    last_ = std::max(last_, tail.last);
}

void RecentEvents::append(std::vector<Event> const& events) {
    for (auto const& event : events) {
        if (event.number <= last_) continue;
        entries_.push_back({event, frame_of(event)});
        entries_.back().event.certificate.reset();
        bytes_ += entries_.back().frame->size();
        last_ = event.number;
    }
    while (entries_.size() > limits_.events || bytes_ > limits_.bytes) {
        base_ = entries_.front().event.number;
        bytes_ -= entries_.front().frame->size();
        entries_.pop_front();
    }
}

RecentEvents::Part RecentEvents::after(std::uint64_t number, EventFilter const& filter) const {
    auto const number_of = [](Entry const& entry) { return entry.event.number; };
    Part part{{}, last_};
    std::size_t bytes = 0;
    for (auto entry = std::ranges::upper_bound(entries_, number, {}, number_of);
         entry != entries_.end(); ++entry) {
        auto frame = frame_for(filter, entry->event, entry->frame);
        if (!frame) continue;
        bytes += frame->size();
        part.frames.push_back(std::move(frame));
        if (bytes < write_bytes) continue;
        part.through = entry->event.number;
        break;
    }
    return part;
}

}  // namespace vfmgr
