// SPDX-License-Identifier: Apache-2.0
// The latest events without a gap between them, each with its frame, which all readers share. How
// many there are is how far a reader may fall behind. A value; not synchronised.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "service/event_limits.hpp"
#include "vfmgr/engine/tenants.hpp"

namespace vfmgr {

// Which events a reader gets; an absent member is no condition.
struct EventFilter {
    std::optional<PciAddress> pf{};
    std::optional<std::string> vm{};  // its name or UUID
    std::optional<std::string> attachment{};
    std::optional<std::string> network{};  // these four change themselves
    std::optional<std::string> pool{};
    std::optional<std::string> reservation{};
    std::optional<std::string> tenant{};
    std::vector<EventKind> kinds{};  // one of them; empty: any
    Viewer viewer{};                 // gets its tenant's only

    [[nodiscard]] bool matches(Event const& event) const;
};

[[nodiscard]] http::Frame frame_of(Event const& event);
// Returns the frame that the reader gets, which is `whole` if it sees all of the event; null: it
// gets none.
[[nodiscard]] http::Frame frame_for(EventFilter const& filter, Event const& event,
                                    http::Frame const& whole = {});

class RecentEvents {
  public:
    RecentEvents() = default;
    // `tail` has the events of the last `limits.events` numbers.
    RecentEvents(RecentLimits limits, EventPage const& tail);

    void limit(RecentLimits limits) { limits_ = limits; }
    // Skips those that are here already.
    void append(std::vector<Event> const& events);
    // The number of the latest event.
    [[nodiscard]] std::uint64_t last() const { return last_; }
    // True when every event that follows this number is here.
    [[nodiscard]] bool covers(std::uint64_t after) const {
        return base_ <= after && after <= last_;
    }
    struct Part {
        std::vector<http::Frame> frames;
        std::uint64_t through = 0;  // the events up to this number are done
    };
    // Returns what matches of the events that follow a number: as many as fit one write.
    [[nodiscard]] Part after(std::uint64_t number, EventFilter const& filter) const;

  private:
    struct Entry {
        Event event;  // without its certificate, which the frame has
        http::Frame frame;
    };
    RecentLimits limits_;
    std::deque<Entry> entries_;
    std::size_t bytes_ = 0;
    std::uint64_t base_ = 0;  // every event above it, up to `last_`, is here
    std::uint64_t last_ = 0;
};

}  // namespace vfmgr
