// SPDX-License-Identifier: Apache-2.0
#include "service/event_streams.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/http/places.hpp"
#include "service/event_reader.hpp"

namespace vfmgr {
namespace {

struct Reader {
    std::uint64_t number = 0;  // in order of arrival
    std::string principal;
    http::Peer peer;
    std::shared_ptr<http::Presence> presence;
    Client client;
    EventReader events;
    std::function<void()> wake{};
    bool cut = false;
};

// What a reader has shown may end with time, so it is asked each time that the reader gets
// something.
bool may_read(Reader const& reader) {
    return !reader.cut && !(reader.presence && http::lapsed(reader.peer, *reader.presence));
}

Error no_place(std::string const& principal, std::vector<http::Place> const& taken,
               EventStreamLimits const& limits) {
    auto const own = std::ranges::count(taken, principal, &http::Place::peer);
    bool const has_its_share = static_cast<std::size_t>(own) >= limits.streams_per_peer_max;
    return {Problem::unavailable,
            has_its_share
                ? fmt::format("{} has the {} streams of events that it may have", principal, own)
                : fmt::format("all {} streams of events are taken", limits.streams_max),
            fmt::format("end one of them; or raise limits.{} in /etc/vfmgr/vfmgr.toml, then: "
                        "systemctl reload vfmgrd",
                        has_its_share ? "event_streams_per_peer_max" : "event_streams_max")};
}

}  // namespace

struct EventStreams::Impl : std::enable_shared_from_this<Impl> {
    Impl(EventStreamLimits given, Seams with) : seams(std::move(with)), limits(given) {}

    std::vector<std::shared_ptr<Reader>> open_readers();
    void wake_all();
    [[nodiscard]] Result<void> make_room(std::string const& principal);
    [[nodiscard]] std::optional<std::vector<http::Frame>> next(
        std::shared_ptr<Reader> const& reader, http::Stream::Due due);
    void ask(std::shared_ptr<Reader> const& reader, std::uint64_t after);

    Seams const seams;
    // The io thread's.
    EventStreamLimits limits;
    RecentEvents recent;
    std::vector<std::weak_ptr<Reader>> readers;  // their connections own them
    std::uint64_t so_far = 0;
};

// Returns those whose connections are there, and forgets the others.
std::vector<std::shared_ptr<Reader>> EventStreams::Impl::open_readers() {
    std::vector<std::shared_ptr<Reader>> open;
    std::erase_if(readers, [&](auto const& one) {
        auto reader = one.lock();
        if (!reader) return true;
        open.push_back(std::move(reader));
        return false;
    });
    return open;
}

void EventStreams::Impl::wake_all() {
    for (auto const& reader : open_readers())
        if (reader->wake) reader->wake();
}

Result<void> EventStreams::Impl::make_room(std::string const& principal) {
    auto const open = open_readers();
    std::vector<http::Place> taken;
    for (auto const& reader : open)
        if (!reader->cut) taken.push_back({reader->principal, reader->number, false});
    http::Limits places;
    places.connections_max = limits.streams_max;
    places.connections_per_peer_max = limits.streams_per_peer_max;
    auto const leaves = http::find_place(taken, principal, places);
    if (!leaves) return fail(no_place(principal, taken, limits));
    if (!*leaves) return {};
    auto const reader = *std::ranges::find(open, **leaves, &Reader::number);
    reader->cut = true;
    if (reader->wake) reader->wake();
    return {};
}

std::optional<std::vector<http::Frame>> EventStreams::Impl::next(
    std::shared_ptr<Reader> const& reader, http::Stream::Due due) {
    if (!may_read(*reader)) return std::nullopt;
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
            if (waiting->wake) waiting->wake();
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
        impl->wake_all();
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
    VFMGR_CHECK(impl_->make_room(call.who.name));
    auto const reader = std::make_shared<Reader>(
        Reader{impl_->so_far++, call.who.name, call.request.peer, call.request.presence,
               client_of(call), EventReader(std::move(filter), after)});
    impl_->readers.push_back(reader);
    auto const stream = std::make_shared<http::Stream>();
    stream->next = [impl = impl_, reader](http::Stream::Due due) {
        return impl->next(reader, due);
    };
    stream->begin = [reader](std::function<void()> wake) { reader->wake = std::move(wake); };
    stream->heartbeat = impl_->limits.heartbeat;
    http::Response response;
    response.content_type = "text/event-stream";
    response.stream = stream;
    return response;
}

}  // namespace vfmgr
