// SPDX-License-Identifier: Apache-2.0
// Where one reader of the fleet's events is, and what it gets next: each event that matches at
// least once, those of one host in the host's order. A value; not synchronised.
//
// A reader that resumes may get events again, since ids come at most once a second: (host, number)
// tells. Nothing is lost silently: where this replica lacks what follows a reader's place on a
// host, or the host has taken events back, or the reader never had a place there, it gets `event:
// resync` with data {"host": …}, for that host only: it lists that host again, and gets what
// follows.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/types/tenant.hpp"
#include "api/types/time.hpp"
#include "service/fleet/inventory/event_vector.hpp"
#include "service/fleet/inventory/fleet_events.hpp"
#include "service/fleet/inventory/list_filters.hpp"

namespace vfmgr::fleet {

inline constexpr std::chrono::seconds event_id_every{1};

// Which events a reader gets; an absent member is no condition.
struct FleetEventFilter {
    HostFilter of{};
    std::optional<PciAddress> pf{};
    std::optional<std::string> vm{};  // its name or UUID
    std::optional<std::string> attachment{};
    std::optional<std::string> network{};
    std::optional<std::string> pool{};
    std::optional<std::string> reservation{};
    std::optional<std::string> tenant{};
    std::vector<EventKind> kinds{};          // one of them; empty: any, newer ones too
    std::shared_ptr<Tenant const> viewer{};  // gets its own only; null: sees everything

    [[nodiscard]] bool matches(HostEvent const& event) const;
};
[[nodiscard]] std::vector<std::string> event_filter_parameters();
[[nodiscard]] Result<FleetEventFilter> read_event_filter(http::Request const& request);

class FleetEventReader {
  public:
    // Absent `after`: it begins with what comes.
    FleetEventReader(FleetEventFilter filter, std::optional<EventVector> after)
        : filter_(std::move(filter)), resumes_(after), places_(after.value_or(EventVector{})) {}

    // As http::Stream::next. Absent: it was too slow, and what it needs next is no longer here; it
    // resumes with another request.
    [[nodiscard]] std::optional<std::vector<http::Frame>> next(FleetEvents const& events,
                                                               http::Stream::Due due, Deadline now);

  private:
    // A place that this replica had not reached when it met it.
    struct Ahead {
        std::uint64_t place = 0;
        std::uint64_t heard = 0;
    };

    void begin(FleetEvents const& events);
    [[nodiscard]] bool has_lost(FleetEvents const& events) const;
    [[nodiscard]] bool chooses(FleetEvents::Host const& host) const;
    void meet(FleetEvents::Host const& host);
    void resync(FleetEvents::Host const& host);
    void judge_ahead(FleetEvents const& events);
    void walk(FleetEvents const& events);
    // Returns the size of its frame; 0: the reader doesn't get it.
    std::size_t take(FleetEvents const& events, FleetEvents::Entry const& entry);
    void take_gap(FleetEvents::Host const& host, FleetEvents::Entry const& entry);
    void leave(std::uint32_t host);
    void catch_up(FleetEvents const& events);

    FleetEventFilter filter_;
    bool resumes_;
    EventVector places_;          // of the hosts that it chooses
    std::uint64_t at_ = 0;        // it is done with the entries up to this place
    std::uint64_t begun_at_ = 0;  // the latest entry when it began
    bool begun_ = false;
    bool moved_ = false;  // since the last id
    Deadline id_at_{};
    std::map<std::uint32_t, Ahead> ahead_;
    std::vector<http::Frame> frames_;
};

}  // namespace vfmgr::fleet
