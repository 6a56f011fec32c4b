// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/drift.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/engine.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr unsigned changes_told_max = 10;
constexpr auto storm_window = 60s;

HistoryEvent event_of(EventKind kind, Drift const& drift, Time at, std::string detail) {
    HistoryEvent event;
    event.at = at;
    event.kind = kind;
    event.pf = drift.pf;
    event.vf = drift.vf;
    event.attachment = drift.attachment;
    event.vm_name = drift.vm_name;
    event.detail = std::move(detail);
    return event;
}

HistoryEvent end_of(Drift const& drift, std::uint64_t event, Time at) {
    auto end = event_of(EventKind::settled, drift, at, "no more: " + drift.sentence);
    end.because_of = event;
    return end;
}

}  // namespace

bool DriftWatch::Seen::can_judge(Drift const& one) const {
    return judged.contains(one.pf) || (is_loss(one) && judged_leases.contains(*one.attachment));
}

DriftWatch::Seen DriftWatch::Seen::losses() const {
    return {drift, {}, managed, {}, judged_leases};
}

std::optional<HistoryEvent> DriftWatch::given_back(Attachment const& lease, Time at) {
    auto const known = std::ranges::find_if(told_.known, [&](auto const& entry) {
        return is_loss(entry.second.drift) && entry.second.drift.attachment == lease.id;
    });
    if (known == told_.known.end()) return std::nullopt;
    auto const [drift, event] = known->second;
    told_.known.erase(known);
    return end_of(drift, event, at);
}

bool DriftWatch::may_tell(Drift const& drift, Deadline now) {
    if (is_loss(drift)) return true;
    auto& storm = pending_.storms[key_of(drift)];
    if (storm.changes == 0) storm.until = now + storm_window;
    if (++storm.changes <= changes_told_max) return true;
    ++storm.untold;
    storm.last = drift;
    return false;
}

std::vector<HistoryEvent> DriftWatch::look(Seen const& seen, Time at, Deadline now,
                                           std::function<std::uint64_t()> const& number) {
    pending_ = told_;
    std::vector<HistoryEvent> events;
    std::erase_if(pending_.storms, [&](auto const& entry) {
        auto const& storm = entry.second;
        if (now < storm.until) return false;
        if (storm.untold > 0)
            events.push_back(event_of(EventKind::drift, storm.last, at,
                                      fmt::format("{}; it changed {} times more within a minute",
                                                  storm.last.sentence, storm.untold)));
        return true;
    });
    std::map<std::string, Known> still;
    for (auto const& drift : seen.drift) {
        if (!seen.can_judge(drift)) continue;
        auto const key = key_of(drift);
        auto const before = pending_.known.find(key);
        bool const known = before != pending_.known.end();
        if (known && before->second.drift.found == drift.found) {
            still.insert(*before);
            continue;
        }
        Known now_known{drift, known ? before->second.event : 0};
        if (may_tell(drift, now)) {
            auto const kind = is_loss(drift) ? EventKind::lost : EventKind::drift;
            auto const owners = seen.owners.find(drift.pf);
            bool const unnamed = is_loss(drift) || owners == seen.owners.end();
            auto event =
                event_of(kind, drift, at,
                         unnamed ? drift.sentence : told_with_owners(drift, owners->second));
            event.number = now_known.event = number();
            events.push_back(std::move(event));
        }
        still.emplace(key, std::move(now_known));
    }
    for (auto const& [key, known] : pending_.known) {
        auto const& drift = known.drift;
        if (still.contains(key) || !seen.managed.contains(drift.pf)) continue;
        if (!seen.can_judge(drift)) {
            still.emplace(key, known);
        } else if (known.event != 0 && may_tell(drift, now)) {
            events.push_back(end_of(drift, known.event, at));
        }
    }
    pending_.known = std::move(still);
    return events;
}

std::optional<std::uint64_t> DriftWatch::told_as(Drift const& drift) const {
    auto const known = told_.known.find(key_of(drift));
    if (known == told_.known.end() || known->second.event == 0) return std::nullopt;
    return known->second.event;
}

// On the observer's thread, right after a look. The claims are asked for last: whoever put
// something of his own into the view during it, or into what is wanted, had claimed it.
DriftWatch::Seen Engine::see_drift() {
    auto const now = control_->snapshot();
    auto const busy = claims_.taken_meanwhile();
    DriftWatch::Seen seen;
    for (auto const& [pci, wanted] : now.desired->pfs) {
        if (!is_managed(wanted)) continue;
        seen.managed.insert(pci);
        if (can_be_judged(*now.host, *now.desired, pci) && !busy.contains("pf " + to_string(pci)))
            seen.judged.insert(pci);
    }
    for (auto const& [id, lease] : now.desired->attachments)
        if (seen.managed.contains(lease.vf.pf) && can_be_judged(find_pf(*now.host, lease.vf.pf)) &&
            !busy.contains("vm " + lease.vm_uuid))
            seen.judged_leases.insert(id);
    seen.drift = find_drift(*now.host, *now.desired);
    return seen;
}

// Files are read when there is something new to tell; what they said is kept with the drift, in
// case that it can't be told yet.
void Engine::look_for_owners(DriftWatch::Seen& seen) {
    if (!find_owners_) return;
    auto const host = control_->snapshot().host;
    std::set<std::string> drift_seen;
    std::set<PciAddress> with_news;
    for (auto const& drift : seen.drift) {
        if (!seen.judged.contains(drift.pf)) continue;
        auto one = fmt::format("{}={}", key_of(drift), drift.found);
        bool const is_new = !drift_seen_.contains(one);
        drift_seen.insert(std::move(one));
        if (is_loss(drift)) continue;
        seen.owners.try_emplace(drift.pf);
        if (is_new) with_news.insert(drift.pf);
    }
    std::vector<PfInfo> pfs;
    for (auto const& pf : with_news)
        if (auto const* const there = find_pf(*host, pf)) pfs.push_back(there->info);
    auto found = pfs.empty() ? OwnersOfPfs{} : find_owners_(pfs);
    for (auto& [pf, owners] : seen.owners)
        owners = with_news.contains(pf) ? found[pf] : owners_[pf];
    owners_ = seen.owners;
    drift_seen_ = std::move(drift_seen);
}

void Engine::tell_drift(Control::State& state, DriftWatch::Seen const& seen) {
    Batch batch;
    for (auto& lease : gone_live(*control_->snapshot().host, state.desired()))
        if (seen.judged.contains(lease.vf.pf)) batch.save_attachments.push_back(std::move(lease));
    batch.save_events = drift_watch_.look(seen, clock_.now(), clock_.steady_now(),
                                          [&] { return state.next_event(); });
    // A store that can't be written: the next look finds the same.
    bool const nothing = batch.save_events.empty() && batch.save_attachments.empty();
    if (nothing || state.commit(std::move(batch))) drift_watch_.commit();
}

}  // namespace vfmgr
