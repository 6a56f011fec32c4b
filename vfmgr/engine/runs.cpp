// SPDX-License-Identifier: Apache-2.0
// Runs that guests are requested to make, or request themselves, from their start to the verdict or
// timeout. On the control thread, except for what others call.
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/plan/slower.hpp"

namespace vfmgr {
namespace {

std::string verdict_sentence(Verification const& verification) {
    auto const verdict = enum_name(verification.verdict);
    return verification.detail.empty()
               ? fmt::format("{}, run {}", verdict, verification.run)
               : fmt::format("{}, run {}: {}", verdict, verification.run, verification.detail);
}

}  // namespace

Result<void> Engine::begin_run(std::string const& attachment, std::string const& vm_uuid,
                               PendingRun run) {
    return control_->wait([&](Control::State& state) -> Result<void> {
        auto const entry = state.desired().attachments.find(attachment);
        if (entry == state.desired().attachments.end() || entry->second.vm_uuid != vm_uuid)
            return fail(Problem::not_found, fmt::format("the VM has no attachment {}", attachment),
                        "vf-guest status shows those of this VM");
        VFMGR_CHECK(write_verdict(state, attachment));
        start_run(state, attachment, std::move(run));
        return {};
    });
}

void Engine::start_run(Control::State& state, std::string const& id, PendingRun run) {
    auto const end = clock_.steady_now() + (run.until - run.started_at);
    control_->watch(end, [this, id, name = run.run, end](Control::State& now, Watch how) {
        auto const pending = now.runs.find(id);
        // The report came in, or another run has begun.
        if (stopping_ || pending == now.runs.end() || pending->second.run != name) return true;
        if (how == Watch::again && clock_.steady_now() < end) return false;
        now.runs.erase(pending);
        control_->post([](Control::State&) {});  // publishes it; watchers don't
        return true;
    });
    state.runs[id] = std::move(run);
}

void Engine::verification_done(Verification verification) {
    control_->post([this, verification = std::move(verification)](Control::State& state) {
        auto const& id = verification.attachment;
        auto const run = state.runs.find(id);
        // A report for a run that ended, or was never requested, changes nothing.
        if (run == state.runs.end() || run->second.run != verification.run) return;
        auto const entry = state.desired().attachments.find(id);
        if (entry == state.desired().attachments.end()) return;
        auto proved = entry->second;
        proved.verification = verification;
        proved.verification->started_at = run->second.started_at;
        proved.verification->finished_at = clock_.now();
        state.runs.erase(run);
        // The guest never gets this: the VF may have been another tenant's before. The verdict
        // stands even if the history can't be read.
        if (auto const earlier = state.store.verifications(proved.vf))
            std::ranges::copy(slower_than_before(*proved.verification, *earlier),
                              std::back_inserter(proved.verification->warnings));
        unwritten_[id] = std::move(proved);
        keep_writing_verdict(state, id);
    });
}

// The attachment may have changed since it was proved, or be gone: the VF's history gets the
// verdict all the same.
Result<void> Engine::write_verdict(Control::State& state, std::string const& id) {
    auto const found = unwritten_.find(id);
    if (found == unwritten_.end()) return {};
    auto const& proved = found->second;
    auto const& verdict = *proved.verification;
    Batch batch;
    batch.save_verifications.emplace_back(proved.vf, verdict);
    batch.save_events.push_back(
        event_of(EventKind::verified, proved, nullptr, verdict_sentence(verdict)));
    auto const entry = state.desired().attachments.find(id);
    if (entry != state.desired().attachments.end()) {
        batch.save_attachments.push_back(entry->second);
        batch.save_attachments.back().verification = verdict;
    }
    VFMGR_CHECK(state.commit(std::move(batch)));
    unwritten_.erase(found);
    return {};
}

void Engine::keep_writing_verdict(Control::State& state, std::string const& id) {
    if (write_verdict(state, id)) return;
    auto const again = clock_.steady_now() + full_disk_retry;
    control_->watch(again, [this, id, again](Control::State&, Watch how) {
        if (stopping_) return true;
        if (how == Watch::again && clock_.steady_now() < again) return false;
        control_->post([this, id](Control::State& later) { keep_writing_verdict(later, id); });
        return true;
    });
}

}  // namespace vfmgr
