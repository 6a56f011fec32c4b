// SPDX-License-Identifier: Apache-2.0
// The streams of GET /v1/events: passes events on to all readers, and ends streams whose reader may
// no longer read. The server cuts the connections of those at once, too. A handle that may be
// copied. Its work is done on the server's io thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "service/recent_events.hpp"
#include "service/routes/router.hpp"

namespace vfmgr {

class EventStreams {
  public:
    struct Seams {
        std::function<void(std::function<void()>)> io_post;  // http::Server's
        std::function<Query<EventPage>(std::uint64_t after, std::size_t max)> read;
    };
    EventStreams(EventStreamLimits limits, Seams seams);
    // `latest` has the events of the last `limits.recent.events` numbers; publish() is called with
    // all that follow. Call it before the server starts.
    void begin(EventPage const& latest) const;

    // One call for each turn of the control thread. Any thread.
    void publish(std::vector<Event> const& events) const;
    // Applies to the streams that follow, and to what is kept from the next events on. Any thread.
    void limit(EventStreamLimits const& limits) const;
    // Answers the call with a stream. On the io thread.
    [[nodiscard]] Result<http::Response> open(Call const& call, EventFilter filter,
                                              std::optional<std::uint64_t> after) const;

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace vfmgr
