// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/contacts.hpp"

#include "service/fleet/membership.hpp"

namespace vfmgr::fleet {
namespace {

// After a write that failed, and for marks, which are due by time.
constexpr std::chrono::seconds look_again{5};
constexpr std::chrono::seconds contact_write_max{10};

}  // namespace

Contacts::Contacts(Seams seams) : seams_(std::move(seams)) {}

Contacts::~Contacts() {
    stop();
}

void Contacts::start() {
    thread_ = std::make_unique<OwnThread>(
        [this] {
            wait_for_news();
            turn();
            return Deadline{};
        },
        [this] {
            std::lock_guard const lock(mutex_);
            news_ = true;
            wake_.notify_all();
        });
}

void Contacts::stop() {
    thread_.reset();
}

void Contacts::wait_for_news() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, look_again, [this] { return news_; });
    news_ = false;
}

void Contacts::said(std::string const& host, Contact const& contact, KnownEvent const& seen) {
    auto const state = seams_.registry.state();
    auto const* const mark = find_record(state->marks, host);
    std::lock_guard const lock(mutex_);
    auto& said = said_[host];
    said.marked = mark ? std::optional(mark->record) : std::nullopt;
    said.contact = contact;
    said.seen = seen;
    said.judged = false;
    news_ = true;
    wake_.notify_all();
}

void Contacts::contradicts(std::string const& host, std::string const& why) {
    std::lock_guard const lock(mutex_);
    auto& said = said_[host];
    said.contradiction = why;
    said.judged = false;
    news_ = true;
    wake_.notify_all();
}

std::map<std::string, Contacts::Due> Contacts::due() {
    auto const state = seams_.registry.state();
    auto const reaches = seams_.reaches();
    auto const now = seams_.clock.now();
    std::map<std::string, Due> due;
    std::lock_guard const lock(mutex_);
    std::erase_if(said_,
                  [&](auto const& entry) { return !find_record(state->hosts, entry.first); });
    for (auto const& [host, said] : said_) {
        auto const reach = reaches->find(host);
        auto const last = reach == reaches->end() ? KnownEvent{} : reach->second.last_event;
        auto const* const mark = find_record(state->marks, host);
        if (!said.judged || mark_is_due(mark ? &mark->record : nullptr, last, said.marked_at, now))
            due.emplace(host, Due{said, last});
    }
    return due;
}

// A host in quarantine stays there until an admin confirms it, whatever it says meanwhile.
void Contacts::turn() {
    if (seams_.registry.state()->stale_since) return;
    for (auto const& [host, one] : due()) {
        auto const& said = one.said;
        auto const done = said.judged ? mark(host, one) : judge(host, said);
        std::lock_guard const lock(mutex_);
        auto const found = said_.find(host);
        if (!done || found == said_.end()) continue;
        if (said.judged) found->second.marked_at = seams_.clock.now();
        // It may have said something else meanwhile.
        bool const same = found->second.contact == said.contact &&
                          found->second.contradiction == said.contradiction;
        if (!same) continue;
        found->second.judged = true;
        found->second.contradiction.clear();
    }
}

Result<void> Contacts::judge(std::string const& host, Said const& said) {
    auto const act = new_act();
    std::string reason;
    auto const decide = [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
        reason.clear();
        auto const* const record = find_record(state.hosts, host);
        if (!record || record->record.state == FleetHostState::quarantined) return std::nullopt;
        reason = said.contradiction;
        if (reason.empty() && said.contact)
            reason = contradiction(seams_.fleet, host, said.marked ? &*said.marked : nullptr,
                                   said.seen.number, *said.contact)
                         .value_or("");
        if (!reason.empty()) return quarantine_host(state, host, reason, act);
        if (record->record.state != FleetHostState::joining || !said.contact) return std::nullopt;
        return activate_host(state, host, act);
    };
    auto const done = seams_.writer.write(decide, seams_.clock.steady_now() + contact_write_max);
    if (!done) return fail(done.error());
    if (!reason.empty() && seams_.quarantined) seams_.quarantined(host, reason);
    return {};
}

Result<void> Contacts::mark(std::string const& host, Due const& due) {
    auto const act = new_act();
    auto const decide = [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
        if (!due.said.contact) return std::nullopt;
        return mark_host(state, host, due.said.contact->store, due.last, act);
    };
    auto const done = seams_.writer.write(decide, seams_.clock.steady_now() + contact_write_max);
    if (!done) return fail(done.error());
    return {};
}

}  // namespace vfmgr::fleet
