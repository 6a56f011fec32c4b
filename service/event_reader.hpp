// SPDX-License-Identifier: Apache-2.0
// Where one reader of the events is, and what it gets next: each event that matches once, and in
// order, whether it comes from the store or was just emitted. A value; not synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/http/http.hpp"
#include "service/recent_events.hpp"

namespace vfmgr {

inline constexpr std::size_t event_page_max = 256;

class EventReader {
  public:
    // Absent `after`: it begins with what comes.
    EventReader(EventFilter filter, std::optional<std::uint64_t> after)
        : filter_(std::move(filter)), after_(after) {}

    // As http::Stream::next. Absent: it was too slow, and what it needs next is no longer at hand;
    // it resumes with another request.
    [[nodiscard]] std::optional<std::vector<http::Frame>> next(RecentEvents const& recent,
                                                               http::Stream::Due due);
    // After next(): the number after which a page of the store is needed. It is asked for once, and
    // again when it has not come by the next heartbeat.
    [[nodiscard]] std::optional<std::uint64_t> asks();
    // Takes the page of event_page_max events that follow `after`, which the store read once all
    // events before it had been emitted.
    void take(std::uint64_t after, EventPage const& page, RecentEvents const& recent);

  private:
    EventFilter filter_;
    std::optional<std::uint64_t> after_;  // it has got everything up to this number
    bool live_ = false;                   // it has caught up once
    bool needs_page_ = false;
    bool asked_ = false;
    std::vector<http::Frame> pending_;
};

}  // namespace vfmgr
