// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/audit_ring.hpp"

#include <algorithm>

namespace vfmgr::fleet {
namespace {

constexpr auto counted_action = "requests without an entry of their own";

Time minute_of(Time time) {
    return std::chrono::floor<std::chrono::minutes>(time);
}

}  // namespace

void AuditRing::add(AuditEntry entry) {
    for (auto* const text : {&entry.who, &entry.action, &entry.subject})
        if (text->size() > limits_.text_bytes) text->resize(limits_.text_bytes);
    std::lock_guard const lock(mutex_);
    push(std::move(entry));
}

void AuditRing::push(AuditEntry entry) {
    auto& part = part_of(entry);
    part.push_back({++last_, std::move(entry)});
    if (part.size() > limits_.entries) part.pop_front();
}

// The row of a minute is near the end: newer entries alone are behind it.
AuditEntry* AuditRing::counted_row(Time minute, std::string const& who, AuditEntry const& entry) {
    auto& part = part_of(entry);
    for (auto it = part.rbegin(); it != part.rend() && it->entry.at >= minute; ++it) {
        auto& row = it->entry;
        if (row.at == minute && row.who == who && row.outcome == entry.outcome &&
            row.action == counted_action)
            return &row;
    }
    return nullptr;
}

void AuditRing::count(AuditEntry const& entry) {
    auto const minute = minute_of(entry.at);
    std::lock_guard const lock(mutex_);
    if (minute != minute_) counted_ = 0;
    minute_ = minute;
    auto who = entry.who.substr(0, limits_.text_bytes);
    auto* row = counted_row(minute, who, entry);
    if (!row && counted_ >= limits_.counted) {
        who = "others";
        row = counted_row(minute, who, entry);
    }
    if (row) {
        row->requests += entry.requests;
        if (row->from != entry.from) row->from.clear();
        return;
    }
    ++counted_;
    push({.at = minute,
          .who = std::move(who),
          .request_id = {},
          .action = counted_action,
          .subject = {},
          .outcome = entry.outcome,
          .refused = entry.refused,
          .requests = entry.requests,
          .from = entry.from});
}

Rows<AuditEntry> AuditRing::rows(std::string const& who, std::string const& outcome,
                                 RowRange const& range) const {
    std::lock_guard const lock(mutex_);
    Rows<AuditEntry> found;
    auto a = refused_.rbegin();
    auto b = others_.rbegin();
    std::optional<RowPlace> last;
    while (a != refused_.rend() || b != others_.rend()) {
        bool const refused = b == others_.rend() || (a != refused_.rend() && a->number > b->number);
        auto const& [number, entry] = refused ? *a++ : *b++;
        if (range.after && number >= range.after->number) continue;
        if (!who.empty() && entry.who != who) continue;
        if (!outcome.empty() && entry.outcome != outcome) continue;
        if (found.items.size() == range.limit) {
            found.next = last;
            return found;
        }
        found.items.push_back(entry);
        last = RowPlace{0, number};
    }
    return found;
}

Audit AuditRing::audit() {
    return {[this](AuditEntry entry) { add(std::move(entry)); },
            [this](AuditEntry const& entry) { count(entry); }};
}

}  // namespace vfmgr::fleet
