// SPDX-License-Identifier: Apache-2.0
#include "service/open_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/http/places.hpp"

namespace vfmgr {
namespace {

// What a reader has shown may end with time, so it is asked each time that the reader gets
// something.
bool may_read(OpenStream const& stream) {
    return !stream.cut && !(stream.presence && http::lapsed(stream.peer, *stream.presence));
}

Error no_place(std::string const& principal, std::vector<http::Place> const& taken,
               EventStreamLimits const& limits, std::string const& to_raise) {
    auto const own = std::ranges::count(taken, principal, &http::Place::peer);
    bool const has_its_share = static_cast<std::size_t>(own) >= limits.streams_per_peer_max;
    return {
        Problem::unavailable,
        has_its_share
            ? fmt::format("{} has the {} streams of events that it may have", principal, own)
            : fmt::format("all {} streams of events are taken", limits.streams_max),
        fmt::format("end one of them; or raise limits.{} {}",
                    has_its_share ? "event_streams_per_peer_max" : "event_streams_max", to_raise)};
}

}  // namespace

// Returns those whose connections are there, and forgets the others.
std::vector<std::shared_ptr<OpenStream>> OpenStreams::open() {
    std::vector<std::shared_ptr<OpenStream>> open;
    std::erase_if(streams_, [&](auto const& one) {
        auto stream = one.lock();
        if (!stream) return true;
        open.push_back(std::move(stream));
        return false;
    });
    return open;
}

void OpenStreams::wake_all() {
    for (auto const& stream : open())
        if (stream->wake) stream->wake();
}

Result<void> OpenStreams::make_room(std::string const& principal, EventStreamLimits const& limits) {
    auto const streams = open();
    std::vector<http::Place> taken;
    for (auto const& stream : streams)
        if (!stream->cut) taken.push_back({stream->principal, stream->number, false});
    http::Limits places;
    places.connections_max = limits.streams_max;
    places.connections_per_peer_max = limits.streams_per_peer_max;
    auto const leaves = http::find_place(taken, principal, places);
    if (!leaves) return fail(no_place(principal, taken, limits, to_raise_));
    if (!*leaves) return {};
    auto const stream = *std::ranges::find(streams, **leaves, &OpenStream::number);
    stream->cut = true;
    if (stream->wake) stream->wake();
    return {};
}

Result<std::shared_ptr<OpenStream>> OpenStreams::take_place(std::string const& principal,
                                                            http::Request const& request,
                                                            EventStreamLimits const& limits) {
    VFMGR_CHECK(make_room(principal, limits));
    auto const stream = std::make_shared<OpenStream>(
        OpenStream{so_far_++, principal, request.peer, request.presence});
    streams_.push_back(stream);
    return stream;
}

http::Response event_stream(
    std::shared_ptr<OpenStream> const& stream, std::chrono::milliseconds heartbeat,
    std::function<std::optional<std::vector<http::Frame>>(http::Stream::Due)> next) {
    auto const body = std::make_shared<http::Stream>();
    body->next = [stream, next = std::move(next)](
                     http::Stream::Due due) -> std::optional<std::vector<http::Frame>> {
        if (!may_read(*stream)) return std::nullopt;
        return next(due);
    };
    body->begin = [stream](std::function<void()> wake) { stream->wake = std::move(wake); };
    body->heartbeat = heartbeat;
    http::Response response;
    response.content_type = "text/event-stream";
    response.stream = body;
    return response;
}

}  // namespace vfmgr
