// SPDX-License-Identifier: Apache-2.0
#include "service/event_streams.hpp"

#include "service/event_reader.hpp"
#include "service/open_streams.hpp"

namespace vfmgr {
namespace {

struct Reader {
    std::shared_ptr<OpenStream> stream;
    Client client;
    EventReader events;
};

}  // namespace

struct EventStreams::Impl : std::enable_shared_from_this<Impl> {
    Impl(EventStreamLimits given, Seams with) : seams(std::move(with)), limits(given) {}

    [[nodiscard]] std::optional<std::vector<http::Frame>> next(
        std::shared_ptr<Reader> const& reader, http::Stream::Due due);
    void ask(std::shared_ptr<Reader> const& reader, std::uint64_t after);

    Seams const seams;
    // The io thread's.
    EventStreamLimits limits;
    RecentEvents recent;
    OpenStreams streams{"in /etc/vfmgr/vfmgr.toml, then: systemctl reload vfmgrd"};
};

std::optional<std::vector<http::Frame>> EventStreams::Impl::next(
    std::shared_ptr<Reader> const& reader, http::Stream::Due due) {
    auto frames = reader->events.next(recent, due);
    if (auto const after = reader->events.asks()) ask(reader, *after);
    return frames;
}

// In the client's turn. A page that can't be had, as too many requests are waiting, is asked for
// again at the next heartbeat.
void EventStreams::Impl::ask(std::shared_ptr<Reader> const& reader, std::uint64_t after) {
    auto const answer = [impl = shared_from_this(), of = std::weak_ptr(reader),
                         after](Result<EventPage> page) {
        if (!page) return;
        impl->seams.io_post([impl, of, after, page = std::move(*page)] {
            auto const waiting = of.lock();
            if (!waiting) return;
            waiting->events.take(after, page, impl->recent);
            if (waiting->stream->wake) waiting->stream->wake();
        });
    };
    seams.read(after, event_page_max).ask(reader->client, answer);
}

EventStreams::EventStreams(EventStreamLimits limits, Seams seams)
    : impl_(std::make_shared<Impl>(limits, std::move(seams))) {}

void EventStreams::begin(EventPage const& latest) const {
    impl_->recent = RecentEvents(impl_->limits.recent, latest);
}

void EventStreams::publish(std::vector<Event> const& events) const {
    impl_->seams.io_post([impl = impl_, events] {
        impl->recent.append(events);
        impl->streams.wake_all();
    });
}

void EventStreams::limit(EventStreamLimits const& limits) const {
    impl_->seams.io_post([impl = impl_, limits] {
        impl->limits = limits;
        impl->recent.limit(limits.recent);
    });
}

Result<http::Response> EventStreams::open(Call const& call, EventFilter filter,
                                          std::optional<std::uint64_t> after) const {
    VFMGR_TRY(auto const stream,
              impl_->streams.take_place(call.who.name, call.request, impl_->limits));
    auto const reader = std::make_shared<Reader>(
        Reader{stream, client_of(call), EventReader(std::move(filter), after)});
    return event_stream(
        stream, impl_->limits.heartbeat,
        [impl = impl_, reader](http::Stream::Due due) { return impl->next(reader, due); });
}

}  // namespace vfmgr
