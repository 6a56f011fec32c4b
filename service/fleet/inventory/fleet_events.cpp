// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/fleet_events.hpp"

#include <algorithm>
#include <utility>

#include "service/fleet/inventory/json_slices.hpp"

namespace vfmgr::fleet {

FleetEvents::Host const* FleetEvents::find(std::uint32_t number) const {
    auto const at = hosts_.find(number);
    return at == hosts_.end() ? nullptr : &at->second;
}

std::optional<std::uint64_t> FleetEvents::Host::place_after(std::uint64_t event) const {
    auto const at = std::ranges::upper_bound(kept, event, {}, &Kept::number);
    return at == kept.end() ? std::nullopt : std::optional(at->place);
}

void FleetEvents::put_host(HostEntry entry) {
    auto const number = entry.number;
    hosts_[number].entry = std::move(entry);
}

void FleetEvents::remove_host(std::uint32_t number) {
    auto const at = hosts_.find(number);
    if (at == hosts_.end()) return;
    forget_entries(at->second);
    hosts_.erase(at);
    add({What::left, number});
}

void FleetEvents::begin(std::uint32_t host, std::uint64_t last) {
    auto const at = hosts_.find(host);
    if (at == hosts_.end()) return;
    auto& known = at->second;
    ++known.heard;
    if (known.begun && known.last == last) return;
    bool const backwards = known.begun && last < known.last;
    forget_entries(known);
    known.begun = true;
    known.base = known.last = last;
    HostEvent none;
    none.number = last;
    add({What::gap, host, backwards, std::move(none)});
    known.gap_at = latest_;
}

void FleetEvents::hear(std::uint32_t host, std::uint64_t last) {
    auto const at = hosts_.find(host);
    if (at == hosts_.end()) return;
    if (!at->second.begun) return begin(host, last);
    ++at->second.heard;
    at->second.last = std::max(at->second.last, last);
}

void FleetEvents::append(std::uint32_t host, HostEvent event) {
    auto const at = hosts_.find(host);
    if (at == hosts_.end() || event.number == 0) return;
    if (!at->second.begun) begin(host, event.number - 1);
    if (event.number <= at->second.last) return;
    at->second.last = event.number;
    auto const data = with_host(at->second.entry.name, event.text);
    auto frame = std::make_shared<std::string const>("data: " + data + "\n\n");
    event.text = {};
    add({What::event, host, false, std::move(event), std::move(frame)});
}

void FleetEvents::add(Entry entry) {
    entry.bytes = event_overhead + (entry.frame ? entry.frame->size() : 0);
    bytes_ += entry.bytes;
    ++latest_;
    auto const at = hosts_.find(entry.host);
    if (at != hosts_.end()) {
        at->second.bytes += entry.bytes;
        at->second.kept.push_back({latest_, entry.event.number});
    }
    entries_.emplace_hint(entries_.end(), latest_, std::move(entry));
    if (at != hosts_.end()) make_room(at->second);
    while (bytes_ > limits_.bytes && entries_.size() > 1) drop(entries_.begin());
}

void FleetEvents::make_room(Host& host) {
    while (host.bytes > limits_.bytes_per_host && host.kept.size() > 1)
        drop(entries_.find(host.kept.front().place));
}

// For want of room: it is the oldest of its host.
void FleetEvents::drop(Entries::iterator at) {
    auto const& entry = at->second;
    dropped_through_ = std::max(dropped_through_, at->first);
    bytes_ -= entry.bytes;
    if (auto const of = hosts_.find(entry.host); of != hosts_.end()) {
        auto& host = of->second;
        host.bytes -= entry.bytes;
        host.base = std::max(host.base, entry.event.number);
        host.kept.pop_front();
    }
    entries_.erase(at);
}

// Of a host whose readers are told so by the entry that follows.
void FleetEvents::forget_entries(Host& host) {
    for (auto const& kept : host.kept) {
        auto const at = entries_.find(kept.place);
        bytes_ -= at->second.bytes;
        entries_.erase(at);
    }
    host.kept.clear();
    host.bytes = 0;
}

}  // namespace vfmgr::fleet
