// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/tenants.hpp"

namespace vfmgr {
namespace {

Event event_at(Time at, EventKind kind, std::string detail) {
    Event event;
    event.at = at;
    event.kind = kind;
    event.detail = std::move(detail);
    return event;
}

}  // namespace

Result<void> Control::State::commit(Batch batch) {
    batch.save_events = recorder_.events_of(batch, desired_, clock_.now());
    prepare(batch.save_events);
    bool const ordinary = !uses_reserve(batch) && batch != Batch{};
    auto const written = store.commit(batch);
    if (written) take(batch);
    report_writable(written, ordinary);
    return written;
}

void Control::State::take(Batch& batch) {
    recorder_.saved(batch, desired_);
    apply(batch, desired_);
    changed_ = true;
    std::ranges::move(batch.save_events, std::back_inserter(emitted_));
    for (auto const& operation : batch.save_operations) {
        if (!finished(operation)) continue;
        pledged_.erase(operation.id);
        if (ended) ended(operation);
    }
}

void Control::State::pledge(std::string const& operation, std::vector<VfSpec> settings) {
    pledged_[operation] = std::move(settings);
}

std::vector<VfSpec> Control::State::pledged() const {
    std::vector<VfSpec> all;
    for (auto const& [operation, settings] : pledged_)
        all.insert(all.end(), settings.begin(), settings.end());
    return all;
}

// Drift is numbered before it is committed, because repairs refer to it.
void Control::State::prepare(std::vector<Event>& events) {
    for (auto& event : events) {
        if (event.number == 0) event.number = next_event();
        if (!event.attachment || event.vm_uuid) continue;
        auto const attachment = desired_.attachments.find(*event.attachment);
        if (attachment != desired_.attachments.end())
            event.vm_uuid = vm_uuid_of(attachment->second);
    }
    std::ranges::sort(events, {}, &Event::number);
}

// A full store still takes what its reserve is for, so only an ordinary batch shows that it can be
// written again. That it can't is reported as soon as there is a place for it.
void Control::State::report_writable(Result<void> const& written, bool ordinary) {
    if (!written && read_only_) return;
    if (!written) {
        read_only_ = true;
        unsaid_ = event_at(clock_.now(), EventKind::store_read_only, written.error().detail);
    }
    bool const again = written && read_only_ && ordinary;
    if (again) read_only_ = false;
    if (!again && !unsaid_) return;
    Batch report;
    auto const unsaid = std::exchange(unsaid_, std::nullopt);
    if (unsaid) report.save_events.push_back(*unsaid);
    if (again)
        report.save_events.push_back(
            event_at(clock_.now(), EventKind::store_writable, "the store can be written again"));
    if (!commit(std::move(report))) unsaid_ = unsaid;
}

void Control::State::record_changes(HostView const& host) {
    auto now = facts_of(host, desired_, host_);
    if (!now) return;
    if (host_) flaps_.damp(*host_, *now, clock_.steady_now());
    Batch batch;
    batch.save_events = changes(host_, *now, clock_.now());
    if (!batch.save_events.empty() && !commit(std::move(batch))) return;
    host_ = std::move(now);
}

void Control::State::emit_events() {
    auto const events = std::exchange(emitted_, {});
    if (emit && !events.empty()) emit(events);
}

void Control::State::set_run(std::string const& attachment, PendingRun run) {
    erase_run(attachment);
    auto const of = desired_.attachments.find(attachment);
    if (of != desired_.attachments.end()) run.vm_uuid = of->second.vm_uuid;
    runs_[attachment] = std::move(run);
    changed_ = true;
}

bool Control::State::erase_run(std::string const& attachment) {
    auto const found = runs_.find(attachment);
    if (found == runs_.end()) return false;
    count_time(found->second);
    runs_.erase(found);
    changed_ = true;
    return true;
}

// A store that can't be written loses the time: that must keep no run from ending.
void Control::State::count_time(PendingRun const& run) {
    if (!tenant_of(desired_.tenants, run.vm_uuid)) return;
    static_cast<void>(
        store.save_run_time({run.run, run.vm_uuid, run.started_at, clock_.now()}).has_value());
}

Result<void> Control::State::load_tokens() {
    VFMGR_TRY(auto const all, store.tokens());
    std::map<std::string, Token> by_hash;
    for (auto const& token : all) {
        by_hash.emplace(token.sha256, token);
        if (token.former) by_hash.emplace(token.former->sha256, token);
    }
    tokens_ = std::make_shared<std::map<std::string, Token> const>(std::move(by_hash));
    changed_ = true;
    return {};
}

// Events of tokens name their id, never anything of the secret.
Result<void> Control::State::save_token(Token const& token) {
    bool const known =
        std::ranges::any_of(*tokens_, [&](auto const& each) { return each.second.id == token.id; });
    std::vector events{known
                           ? event_at(clock_.now(), EventKind::token_rotated,
                                      fmt::format("token {} has another secret", token.id))
                           : event_at(clock_.now(), EventKind::token_created,
                                      fmt::format("token {} with role {}", token.id, token.role))};
    events.front().token = token.id;
    prepare(events);
    VFMGR_CHECK(store.save_token(token, events));
    std::ranges::move(events, std::back_inserter(emitted_));
    return load_tokens();
}

Result<bool> Control::State::erase_token(std::string const& id) {
    std::vector events{event_at(clock_.now(), EventKind::token_revoked,
                                fmt::format("token {} is no longer valid", id))};
    events.front().token = id;
    prepare(events);
    VFMGR_TRY(bool const erased, store.erase_token(id, events));
    if (erased) std::ranges::move(events, std::back_inserter(emitted_));
    VFMGR_CHECK(load_tokens());
    return erased;
}

}  // namespace vfmgr
