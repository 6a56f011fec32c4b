// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/drift.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/engine.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr unsigned changes_reported_max = 10;
constexpr auto storm_window = 60s;

HistoryEvent event_of(EventKind kind, Drift const& drift, Time at, std::string detail) {
    HistoryEvent event;
    event.at = at;
    event.kind = kind;
    event.pf = drift.pf;
    event.vf = drift.vf;
    event.attachment = drift.attachment;
    event.vm = drift.vm;
    event.detail = std::move(detail);
    return event;
}

HistoryEvent end_of(Drift const& drift, std::uint64_t event, Time at) {
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

std::optional<HistoryEvent> DriftWatch::restored(Attachment const& attachment, Time at) {
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

std::vector<HistoryEvent> DriftWatch::events_of(Observed const& observed, Time at, Deadline now,
                                                std::function<std::uint64_t()> const& number) {
    pending_ = reported_;
    std::vector<HistoryEvent> events;
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

// On the observer's thread, right after an observation. Reads the claims last: an operation that
// put its own change into the view during the observation, or into the desired state, had claimed
// it.
DriftWatch::Observed Engine::observe_drift() {
    auto const now = control_->snapshot();
    auto const busy = claims_.taken_meanwhile();
    DriftWatch::Observed observed;
    for (auto const& [pci, desired] : now.desired->pfs) {
        if (!is_managed(desired)) continue;
        observed.managed.insert(pci);
        if (can_be_judged(*now.host, *now.desired, pci) && !busy.contains("pf " + to_string(pci)))
            observed.judged.insert(pci);
    }
    for (auto const& [id, attachment] : now.desired->attachments)
        if (observed.managed.contains(attachment.vf.pf) &&
            can_be_judged(find_pf(*now.host, attachment.vf.pf)) &&
            !busy.contains("vm " + attachment.vm_uuid))
            observed.judged_attachments.insert(id);
    observed.drift = find_drift(*now.host, *now.desired);
    return observed;
}

// Reads files only when there is news to report. Their result is kept with the drift, in case it
// can't be reported yet.
void Engine::name_owners(DriftWatch::Observed& observed) {
    if (!find_owners_) return;
    auto const host = control_->snapshot().host;
    std::set<std::string> drift_observed;
    std::set<PciAddress> with_news;
    for (auto const& drift : observed.drift) {
        if (!observed.judged.contains(drift.pf)) continue;
        auto one = fmt::format("{}={}", key_of(drift), drift.found);
        bool const is_new = !drift_observed_.contains(one);
        drift_observed.insert(std::move(one));
        if (is_loss(drift)) continue;
        observed.owners.try_emplace(drift.pf);
        if (is_new) with_news.insert(drift.pf);
    }
    std::vector<PfInfo> pfs;
    for (auto const& pf : with_news)
        if (auto const* const there = find_pf(*host, pf)) pfs.push_back(there->info);
    auto found = pfs.empty() ? OwnersOfPfs{} : find_owners_(pfs);
    for (auto& [pf, owners] : observed.owners)
        owners = with_news.contains(pf) ? found[pf] : owners_[pf];
    owners_ = observed.owners;
    drift_observed_ = std::move(drift_observed);
}

void Engine::report_drift(Control::State& state, DriftWatch::Observed const& observed) {
    Batch batch;
    for (auto& attachment : gone_live(*control_->snapshot().host, state.desired()))
        if (observed.judged.contains(attachment.vf.pf))
            batch.save_attachments.push_back(std::move(attachment));
    batch.save_events = drift_watch_.events_of(observed, clock_.now(), clock_.steady_now(),
                                               [&] { return state.next_event(); });
    // If the store can't be written, the next observation finds the same.
    bool const nothing = batch.save_events.empty() && batch.save_attachments.empty();
    if (nothing || state.commit(std::move(batch))) drift_watch_.commit();
}

}  // namespace vfmgr
