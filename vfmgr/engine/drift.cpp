// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/drift.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr unsigned changes_reported_max = 10;
constexpr auto storm_window = 60s;

Event event_of(EventKind kind, Drift const& drift, Time at, std::string detail) {
    Event event;
    event.at = at;
    event.kind = kind;
    event.pf = drift.pf;
    event.vf = drift.vf;
    event.attachment = drift.attachment;
    event.vm = drift.vm;
    event.detail = std::move(detail);
    return event;
}

Event end_of(Drift const& drift, std::uint64_t event, Time at) {
    auto end = event_of(EventKind::settled, drift, at, "no longer: " + drift.sentence);
    end.because_of = event;
    return end;
}

}  // namespace

bool DriftWatch::Observed::can_judge(Drift const& one) const {
    return judged.contains(one.pf) ||
           (is_loss(one) && judged_attachments.contains(*one.attachment));
}

DriftWatch::Observed DriftWatch::Observed::losses() const {
    return {drift, {}, managed, {}, judged_attachments};
}

std::optional<Event> DriftWatch::restored(Attachment const& attachment, Time at) {
    auto const known = std::ranges::find_if(reported_.known, [&](auto const& entry) {
        return is_loss(entry.second.drift) && entry.second.drift.attachment == attachment.id;
    });
    if (known == reported_.known.end()) return std::nullopt;
    auto const [drift, event] = known->second;
    reported_.known.erase(known);
    return end_of(drift, event, at);
}

bool DriftWatch::may_report(Drift const& drift, Deadline now) {
    if (is_loss(drift)) return true;
    auto& storm = pending_.storms[key_of(drift)];
    if (storm.changes == 0) storm.until = now + storm_window;
    if (++storm.changes <= changes_reported_max) return true;
    ++storm.unreported;
    storm.last = drift;
    return false;
}

std::vector<Event> DriftWatch::events_of(Observed const& observed, Time at, Deadline now,
                                         std::function<std::uint64_t()> const& number) {
    pending_ = reported_;
    std::vector<Event> events;
    std::erase_if(pending_.storms, [&](auto const& entry) {
        auto const& storm = entry.second;
        if (now < storm.until) return false;
        if (storm.unreported > 0)
            events.push_back(event_of(EventKind::drift, storm.last, at,
                                      fmt::format("{}; it changed {} more times within a minute",
                                                  storm.last.sentence, storm.unreported)));
        return true;
    });
    std::map<std::string, Known> still;
    for (auto const& drift : observed.drift) {
        if (!observed.can_judge(drift)) continue;
        auto const key = key_of(drift);
        auto const before = pending_.known.find(key);
        bool const known = before != pending_.known.end();
        if (known && before->second.drift.found == drift.found) {
            still.insert(*before);
            continue;
        }
        Known now_known{drift, known ? before->second.event : 0};
        if (may_report(drift, now)) {
            auto const kind = is_loss(drift) ? EventKind::lost : EventKind::drift;
            auto const owners = observed.owners.find(drift.pf);
            bool const unnamed = is_loss(drift) || owners == observed.owners.end();
            auto event = event_of(kind, drift, at,
                                  unnamed ? drift.sentence : with_owners(drift, owners->second));
            event.number = now_known.event = number();
            events.push_back(std::move(event));
        }
        still.emplace(key, std::move(now_known));
    }
    for (auto const& [key, known] : pending_.known) {
        auto const& drift = known.drift;
        if (still.contains(key) || !observed.managed.contains(drift.pf)) continue;
        if (!observed.can_judge(drift)) {
            still.emplace(key, known);
        } else if (known.event != 0 && may_report(drift, now)) {
            events.push_back(end_of(drift, known.event, at));
        }
    }
    pending_.known = std::move(still);
    return events;
}

std::optional<std::uint64_t> DriftWatch::reported_as(Drift const& drift) const {
    auto const known = reported_.known.find(key_of(drift));
    if (known == reported_.known.end() || known->second.event == 0) return std::nullopt;
    return known->second.event;
}

}  // namespace vfmgr
