// SPDX-License-Identifier: Apache-2.0
// The latest events of all hosts, in the order in which this replica received them; those of one
// host are in the host's order and without a gap. All readers share each event's frame. A value;
// not synchronised.
//
// What bounds it is bytes: of one host, so that a noisy one costs its own readers' history and not
// that of others, and of all.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "api/http/http.hpp"
#include "service/fleet/inventory/host_event.hpp"
#include "service/fleet/inventory/inventory.hpp"

namespace vfmgr::fleet {

// Frames, with `event_overhead` for each event: its facts, and its places in the lists.
struct FleetEventLimits {
    std::size_t bytes_per_host = 64 << 10;  // some 80 events
    std::size_t bytes = 64 << 20;
};
inline constexpr std::size_t event_overhead = 512;

class FleetEvents {
  public:
    struct Kept {
        std::uint64_t place = 0;
        std::uint64_t number = 0;  // the event's
    };
    struct Host {
        HostEntry entry;
        bool begun = false;        // it is known which event was its last
        std::uint64_t base = 0;    // every event above it, up to `last`, is here
        std::uint64_t last = 0;    // its last event, as far as it has said
        std::uint64_t heard = 0;   // how often it has said so
        std::uint64_t gap_at = 0;  // the latest gap's place; 0: there was none
        std::deque<Kept> kept{};   // its entries
        std::size_t bytes = 0;

        // The place of the first entry after an event; nullopt: none follows.
        [[nodiscard]] std::optional<std::uint64_t> place_after(std::uint64_t event) const;
    };
    // gap: events before it are not here, or were forgotten. left: the host is not of the fleet
    // any more.
    enum class What { event, gap, left };
    struct Entry {
        What what = What::event;
        std::uint32_t host = 0;
        bool backwards = false;  // a gap: the host has forgotten events that it had given
        HostEvent event{};       // without its text, which the frame has
        http::Frame frame{};     // null of what is no event
        std::size_t bytes = 0;
    };
    using Entries = std::map<std::uint64_t, Entry>;  // by place: in the order of their arrival

    explicit FleetEvents(FleetEventLimits limits = {}) : limits_(limits) {}

    // --- what the registry has ---
    void put_host(HostEntry entry);
    void remove_host(std::uint32_t number);

    // --- what the host's stream has; each does nothing for a host that is not there ---
    // Events follow that come after this one (the host's `current` or `resync`). What was missed
    // before them is a gap, unless it is none.
    void begin(std::uint32_t host, std::uint64_t last);
    // The host says that this was its last event, and all up to it came (its heartbeat).
    void hear(std::uint32_t host, std::uint64_t last);
    // Skips one that is here already. Called once the documents that the event changed are read
    // again (refresh.hpp), so that whoever lists after it finds what it is about.
    void append(std::uint32_t host, HostEvent event);

    // --- for readers ---
    [[nodiscard]] std::map<std::uint32_t, Host> const& hosts() const { return hosts_; }
    [[nodiscard]] Host const* find(std::uint32_t number) const;
    [[nodiscard]] Entries const& entries() const { return entries_; }
    // The place of the latest entry; 0: there was none.
    [[nodiscard]] std::uint64_t latest() const { return latest_; }
    // Entries up to this place may be missing, for want of room.
    [[nodiscard]] std::uint64_t dropped_through() const { return dropped_through_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  private:
    void add(Entry entry);
    void forget_entries(Host& host);
    void drop(Entries::iterator at);
    void make_room(Host& host);

    FleetEventLimits limits_;
    std::map<std::uint32_t, Host> hosts_;
    Entries entries_;
    std::uint64_t latest_ = 0;
    std::uint64_t dropped_through_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace vfmgr::fleet
