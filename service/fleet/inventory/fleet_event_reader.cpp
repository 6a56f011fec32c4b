// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/fleet_event_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/types/json.hpp"
#include "service/fleet/inventory/json_slices.hpp"
#include "vfmgr/plan/tenants.hpp"

namespace vfmgr::fleet {
namespace {

using Due = http::Stream::Due;

constexpr std::size_t write_bytes = 64 * 1024;

http::Frame frame_of(std::string text) {
    return std::make_shared<std::string const>(std::move(text));
}

// What of an event decides whether it is a tenant's.
Event outline(HostEvent const& event, EventKind kind) {
    Event outline;
    outline.kind = kind;
    outline.vm_uuid = event.vm_uuid;
    outline.reservation = event.reservation;
    outline.network = event.network;
    outline.pool = event.pool;
    return outline;
}

// Written anew from what this version knows: what a newer host adds may be for admins only. Null:
// the tenant doesn't get it.
http::Frame frame_for(Tenant const& viewer, std::string_view host,
                      FleetEvents::Entry const& entry) {
    auto const& kind = entry.event.kind;
    if (!kind || !seen_by(viewer, outline(entry.event, *kind))) return {};
    constexpr std::string_view before = "data: ";
    auto const document = parse_json(std::string_view(*entry.frame).substr(before.size()));
    if (!document) return {};
    auto const event = from_json_document<Event>(*document, UnknownKeys::ignored);
    auto const seen = event ? seen_by(viewer, *event) : std::nullopt;
    if (!seen) return {};
    std::string text;
    append_json(text, *seen);
    return frame_of(fmt::format("{}{}\n\n", before, with_host(host, text)));
}

}  // namespace

bool FleetEventReader::chooses(FleetEvents::Host const& host) const {
    return filter_.of.any() || filter_.of.matches(host.entry);
}

std::optional<std::vector<http::Frame>> FleetEventReader::next(FleetEvents const& events, Due due,
                                                               Deadline now) {
    if (!std::exchange(begun_, true)) {
        begin(events);
        id_at_ = now;
    } else if (has_lost(events)) {
        return std::nullopt;
    }
    judge_ahead(events);
    walk(events);
    bool const beats = due == Due::beat && frames_.empty();
    if (!beats && now - id_at_ < event_id_every) return std::exchange(frames_, {});
    catch_up(events);
    if (moved_) {
        frames_.push_back(frame_of(fmt::format(":\nid: {}\n\n", places_.text())));
        moved_ = false;
        id_at_ = now;
    } else if (beats) {
        frames_.push_back(frame_of(":\n\n"));
    }
    return std::exchange(frames_, {});
}

void FleetEventReader::begin(FleetEvents const& events) {
    at_ = begun_at_ = events.latest();
    for (auto const& [number, host] : events.hosts()) {
        if (!host.begun) continue;
        if (!chooses(host)) {
            places_.erase(number);
            continue;
        }
        if (!resumes_) {
            places_.put(number, host.last);
            continue;
        }
        meet(host);
        // Of a thousand hosts a reader that was away for a moment lacks the events of a few.
        if (auto const next = host.place_after(places_.at(number).value_or(host.last)))
            at_ = std::min(at_, *next - 1);
    }
    if (resumes_) return;
    frames_.push_back(frame_of(fmt::format("id: {}\nevent: current\ndata: {{\"hosts\":{}}}\n\n",
                                           places_.text(), places_.places().size())));
}

// Entries that were dropped may be ones that it was to have: those of hosts on which it is behind
// what is here, or a gap that it has not passed.
bool FleetEventReader::has_lost(FleetEvents const& events) const {
    if (at_ >= events.dropped_through()) return false;
    for (auto const& [number, host] : events.hosts()) {
        if (!host.begun || !chooses(host)) continue;
        auto const place = places_.at(number);
        if (!place || *place < host.base) return true;
        auto const passed = std::max(at_, begun_at_);
        if (host.gap_at > passed && host.gap_at <= events.dropped_through()) return true;
    }
    return false;
}

// A place beyond the host's last event: either another replica was faster, and the events come; or
// the host's store was restored. Which of the two it is, the host's next word tells. Until then it
// gets what comes, some of it again.
void FleetEventReader::meet(FleetEvents::Host const& host) {
    auto const number = host.entry.number;
    auto const place = places_.at(number);
    if (!place || *place < host.base) return resync(host);
    if (*place <= host.last) return;
    ahead_.insert_or_assign(number, Ahead{*place, host.heard});
    places_.put(number, host.last);
    moved_ = true;
}

void FleetEventReader::resync(FleetEvents::Host const& host) {
    frames_.push_back(
        frame_of(fmt::format("event: resync\ndata: {{\"host\":\"{}\"}}\n\n", host.entry.name)));
    ahead_.erase(host.entry.number);
    places_.put(host.entry.number, host.last);
    moved_ = true;
}

void FleetEventReader::judge_ahead(FleetEvents const& events) {
    for (auto at = ahead_.begin(); at != ahead_.end();) {
        auto const [number, ahead] = *at++;
        auto const* const host = events.find(number);
        if (!host || host->last >= ahead.place)
            ahead_.erase(number);
        else if (host->heard > ahead.heard)
            resync(*host);
    }
}

void FleetEventReader::walk(FleetEvents const& events) {
    std::size_t bytes = 0;
    auto const& entries = events.entries();
    for (auto at = entries.upper_bound(at_); at != entries.end() && bytes < write_bytes; ++at) {
        at_ = at->first;
        bytes += take(events, at->second);
    }
    if (bytes < write_bytes) at_ = events.latest();
}

std::size_t FleetEventReader::take(FleetEvents const& events, FleetEvents::Entry const& entry) {
    auto const* const host = events.find(entry.host);
    if (entry.what == FleetEvents::What::left || !host || !chooses(*host)) {
        leave(entry.host);
        return 0;
    }
    if (entry.what == FleetEvents::What::gap) {
        take_gap(*host, entry);
        return 0;
    }
    auto const place = places_.at(entry.host);
    // It chooses the host since its labels changed.
    if (!place) resync(*host);
    if (!place || entry.event.number <= *place) return 0;
    places_.put(entry.host, entry.event.number);
    moved_ = true;
    if (!filter_.matches(entry.event)) return 0;
    auto frame = filter_.viewer ? frame_for(*filter_.viewer, host->entry.name, entry) : entry.frame;
    if (!frame) return 0;
    auto const size = frame->size();
    frames_.push_back(std::move(frame));
    return size;
}

// Those of before it began were judged when it did.
void FleetEventReader::take_gap(FleetEvents::Host const& host, FleetEvents::Entry const& entry) {
    if (at_ <= begun_at_) return;
    if (entry.backwards) return resync(host);
    meet(host);
}

void FleetEventReader::leave(std::uint32_t host) {
    if (!places_.at(host)) return;
    places_.erase(host);
    ahead_.erase(host);
    moved_ = true;
}

// With all entries done, it has everything that each host has said to have given.
void FleetEventReader::catch_up(FleetEvents const& events) {
    if (at_ != events.latest()) return;
    for (auto const& [number, place] : std::vector(places_.places())) {
        auto const* const host = events.find(number);
        if (!host || !host->begun || host->last <= place) continue;
        places_.put(number, host->last);
        moved_ = true;
    }
}

}  // namespace vfmgr::fleet
