// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/audit_trail.hpp"

#include <algorithm>
#include <utility>

#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t minutes_kept = 8;

Time minute_of(Time time) {
    return std::chrono::floor<std::chrono::minutes>(time);
}

}  // namespace

void AuditTrail::add(AuditEntry entry) {
    std::lock_guard const lock(mutex_);
    if (waiting_.size() >= limits_.waiting)
        count_locked(entry);
    else
        waiting_.push_back(std::move(entry));
    begin_writing();
}

void AuditTrail::count(AuditEntry const& entry) {
    std::lock_guard const lock(mutex_);
    count_locked(entry);
}

void AuditTrail::write_minutes(Time now) {
    std::lock_guard const lock(mutex_);
    over_ = minute_of(now);
    if (!counted_.empty() && std::get<0>(counted_.begin()->first) < over_) begin_writing();
}

void AuditTrail::finish() {
    {
        std::lock_guard const lock(mutex_);
        over_ = Time::max();
    }
    control_.wait([self = shared_from_this()](Control::State& state) {
        self->write(state);
        return true;
    });
}

// Limits the rows: names come from the network, and a full store may accept no write for hours.
void AuditTrail::count_locked(AuditEntry const& entry) {
    auto minute = minute_of(entry.at);
    auto who = entry.who;
    if (!counted_.contains({minute, who, entry.outcome})) {
        auto const of_minute = std::ranges::count_if(
            counted_, [&](auto const& one) { return std::get<0>(one.first) == minute; });
        if (static_cast<std::size_t>(of_minute) >= limits_.counted) who = "others";
        if (counted_.size() >= minutes_kept * limits_.counted)
            std::tie(minute, who) = std::tuple(std::get<0>(counted_.begin()->first), "others");
    }
    auto& row = counted_[{minute, who, entry.outcome}];
    bool const first = row.who.empty();
    row = {.at = minute,
           .who = who,
           .request_id = {},
           .action = "requests without an entry of their own",
           .subject = {},
           .outcome = entry.outcome,
           .refused = entry.refused,
           .requests = entry.requests + (first ? 0 : row.requests),
           .from = first || row.from == entry.from ? entry.from : std::string()};
}

void AuditTrail::begin_writing() {
    if (writing_) return;
    writing_ = true;
    auto const now = control_.clock().steady_now();
    auto const at = std::max(next_write_, now);
    next_write_ = at + limits_.pause;
    auto const task = [self = shared_from_this()](Control::State& state) { self->write(state); };
    // Posted now, so that the next audit query includes it.
    if (at == now) return control_.post(task);
    control_.watch(at, [task](Control::State& state, Watch why) {
        if (why == Watch::again) return false;
        task(state);
        return true;
    });
}

// Counts the entries that a full store can't take, and retries with the next write.
void AuditTrail::write(Control::State& state) {
    std::vector<AuditEntry> entries;
    {
        std::lock_guard const lock(mutex_);
        writing_ = false;
        entries = std::exchange(waiting_, {});
        std::erase_if(counted_, [&](auto const& one) {
            if (std::get<0>(one.first) >= over_) return false;
            entries.push_back(one.second);
            return true;
        });
    }
    if (entries.empty() || state.store.append_audits(entries)) return;
    std::lock_guard const lock(mutex_);
    for (auto const& entry : entries) count_locked(entry);
}

}  // namespace vfmgr
