// SPDX-License-Identifier: Apache-2.0
#include "service/event_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/http/sse.hpp"

namespace vfmgr {
namespace {

http::Frame frame(std::string text) {
    return std::make_shared<std::string const>(std::move(text));
}

// Tells from where on the reader gets everything.
http::Frame place_frame(std::string_view name, std::uint64_t number) {
    return frame(http::sse_event(number, name, fmt::format(R"({{"number":{}}})", number)));
}

}  // namespace

std::optional<std::vector<http::Frame>> EventReader::next(RecentEvents const& recent,
                                                          http::Stream::Due due) {
    bool const beat = due == http::Stream::Due::beat;
    if (!pending_.empty()) return std::exchange(pending_, {});
    if (!after_) {
        after_ = recent.last();
        return std::vector{place_frame("current", *after_)};
    }
    if (recent.covers(*after_)) {
        live_ = true;
        auto part = recent.after(*after_, filter_);
        after_ = part.through;
        if (part.frames.empty() && beat) part.frames = {frame(http::sse_heartbeat(after_))};
        return std::move(part.frames);
    }
    if (live_) return std::nullopt;
    needs_page_ = true;
    if (beat) asked_ = false;
    if (beat) return std::vector{frame(http::sse_heartbeat({}))};
    return std::vector<http::Frame>{};
}

std::optional<std::uint64_t> EventReader::asks() {
    if (!needs_page_ || std::exchange(asked_, true)) return std::nullopt;
    return after_;
}

void EventReader::take(std::uint64_t after, EventPage const& page, RecentEvents const& recent) {
    if (after != after_ || !asked_) return;  // another page came first
    needs_page_ = asked_ = false;
    // What follows was deleted, or was never given in this store: it may be an older one, restored.
    if (*after_ < page.pruned || *after_ > page.last) {
        after_ = recent.last();
        pending_.push_back(place_frame("resync", *after_));
        return;
    }
    for (auto const& event : page.events)
        if (auto one = frame_for(filter_, event)) pending_.push_back(std::move(one));
    bool const more = page.events.size() == event_page_max;
    after_ = more ? page.events.back().number : page.last;
}

}  // namespace vfmgr
