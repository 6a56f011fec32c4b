// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/fleet_event_streams.hpp"

#include <utility>

#include "service/open_streams.hpp"

namespace vfmgr::fleet {
namespace {

// A client that resumes repeats its whole request, so the header is later than the parameter.
Result<std::optional<EventVector>> resumes_after(http::Request const& request) {
    auto const parsed = [](std::string const& text) -> Result<std::optional<EventVector>> {
        VFMGR_TRY(auto vector, EventVector::parse(text));
        return vector;
    };
    if (auto const last = request.headers.find("last-event-id"); last != request.headers.end())
        return parsed(last->second);
    if (auto const after = request.query.find("after"); after != request.query.end())
        return parsed(after->second);
    return std::nullopt;
}

}  // namespace

struct FleetEventStreams::Impl {
    std::function<void(std::function<void()>)> io_post;
    Clock const& clock;
    // The io thread's.
    EventStreamLimits limits;
    FleetEvents events;
    OpenStreams streams{"in /etc/vfmgr/fleetd.toml, then: systemctl reload vfmgr-fleetd"};
};

FleetEventStreams::FleetEventStreams(EventStreamLimits streams, FleetEventLimits events,
                                     std::function<void(std::function<void()>)> io_post,
                                     Clock const& clock)
    : impl_(std::make_shared<Impl>(Impl{std::move(io_post), clock, streams, FleetEvents(events)})) {
}

void FleetEventStreams::change(std::function<void(FleetEvents&)> how) const {
    impl_->io_post([impl = impl_, how = std::move(how)] {
        how(impl->events);
        impl->streams.wake_all();
    });
}

void FleetEventStreams::limit(EventStreamLimits const& limits) const {
    impl_->io_post([impl = impl_, limits] { impl->limits = limits; });
}

Result<http::Response> FleetEventStreams::open(http::Request const& request,
                                               std::string const& principal,
                                               std::shared_ptr<Tenant const> viewer) const {
    VFMGR_TRY(auto after, resumes_after(request));
    VFMGR_TRY(auto filter, read_event_filter(request));
    filter.viewer = std::move(viewer);
    VFMGR_TRY(auto const stream, impl_->streams.take_place(principal, request, impl_->limits));
    auto const reader = std::make_shared<FleetEventReader>(std::move(filter), std::move(after));
    return event_stream(stream, impl_->limits.heartbeat,
                        [impl = impl_, reader](http::Stream::Due due) {
                            return reader->next(impl->events, due, impl->clock.steady_now());
                        });
}

}  // namespace vfmgr::fleet
