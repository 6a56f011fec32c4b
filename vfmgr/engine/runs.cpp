// SPDX-License-Identifier: Apache-2.0
// Runs that guests are requested to make, or request themselves, from their start to the verdict or
// timeout. On the control thread, except for what others call.
#include <fmt/format.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "vfmgr/engine/runs.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/engine/timing.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/silence.hpp"

namespace vfmgr {
namespace {

std::string verdict_sentence(Verification const& verification) {
    auto const verdict = enum_name(verification.verdict);
    return verification.detail.empty()
               ? fmt::format("{}, run {}", verdict, verification.run)
               : fmt::format("{}, run {}: {}", verdict, verification.run, verification.detail);
}

// A driver may ask its firmware for each, so only those of guests that can fall silent are read.
std::optional<VfCounters> counters_of(Seams const& seams, Attachment const& attachment) {
    if (!is_on_tcp(attachment.spec)) return std::nullopt;
    auto const read = seams.kernel.read_traffic(attachment.vf.pf);
    if (!read || read->empty()) return std::nullopt;
    auto const& vfs = read->front().vfs;
    auto const vf = std::ranges::find(vfs, attachment.vf.index, &VfTraffic::index);
    return vf == vfs.end() ? std::nullopt : std::optional(vf->counters);
}

}  // namespace

Error no_such_attachment(std::string const& id) {
    return {Problem::not_found, fmt::format("attachment {} no longer exists", id),
            "no action is needed"};
}

Error vfmgrd_stops() {
    return {Problem::unavailable, "vfmgrd is stopping", "try again when it runs"};
}

Error failed_verification(Attachment const& attachment, Verification const& verification) {
    std::vector<std::string> failed;
    for (auto const& test : verification.tests)
        if (test.verdict != Verdict::pass)
            failed.push_back(
                fmt::format("{} {}: {}", test.name, enum_name(test.verdict), test.detail));
    auto why = verification.detail;
    if (why.empty()) why = fmt::format("{}", fmt::join(failed, "; "));
    return {Problem::guest_refused,
            fmt::format("RDMA over VF {} could not be proved from VM {}: {}",
                        to_string(attachment.vf), attachment.vm, why),
            verification.remedy.empty() ? "see the verification's tests for cause and remedy"
                                        : verification.remedy};
}

Error changed_meanwhile(Attachment const& attachment) {
    return discreetly(
        {Problem::conflict,
         fmt::format("attachment {} was changed while it was verified, so the verdict "
                     "is not about its present settings",
                     attachment.id),
         "verify it again"});
}

Error no_report(Attachment const& attachment, std::uint32_t timeout_seconds) {
    return {Problem::timed_out,
            fmt::format("VM {} did not report within {} s", attachment.vm, timeout_seconds),
            "check in the VM that vf-guest runs and reaches the host: vf-guest status"};
}

Result<void> Runs::begin_run(std::string const& attachment, std::string const& guest,
                             PendingRun run) {
    return seams().control.wait([&](Control::State& state) -> Result<void> {
        auto const entry = state.desired().attachments.find(attachment);
        if (entry == state.desired().attachments.end() || guest_key(entry->second) != guest)
            return fail(Problem::not_found, fmt::format("the VM has no attachment {}", attachment),
                        "vf-guest status shows those of this VM");
        if (auto const* const tenant = tenant_of(state.desired().tenants, entry->second.vm_uuid))
            VFMGR_CHECK(check_minutes(state, *tenant, seams().clock.now()));
        VFMGR_CHECK(write_verdict(state, attachment));
        start_run(state, attachment, std::move(run));
        return {};
    });
}

void Runs::start_run(Control::State& state, std::string const& id, PendingRun run) {
    auto const end = seams().clock.steady_now() + (run.until - run.started_at);
    if (auto const of = state.desired().attachments.find(id);
        of != state.desired().attachments.end())
        run.settings = of->second.settings;
    seams().control.watch(end, [this, id, name = run.run](Control::State& now, Watch how) {
        auto const pending = now.runs().find(id);
        // The report came in, or another run has begun.
        if (operations_.stopping() || pending == now.runs().end() || pending->second.run != name)
            return true;
        if (how == Watch::again) return false;
        now.erase_run(id);
        return true;
    });
    state.set_run(id, std::move(run));
}

void Runs::verification_done(Verification verification) {
    seams().control.post([this, verification = std::move(verification)](Control::State& state) {
        auto const& id = verification.attachment;
        auto const run = state.runs().find(id);
        // A report for a run that ended, or was never requested, changes nothing.
        if (run == state.runs().end() || run->second.run != verification.run) return;
        auto const entry = state.desired().attachments.find(id);
        if (entry == state.desired().attachments.end()) return;
        auto proved = entry->second;
        proved.settings = run->second.settings;
        proved.verification = verification;
        proved.verification->started_at = run->second.started_at;
        proved.verification->finished_at = seams().clock.now();
        state.erase_run(id);
        // The guest never gets this: the VF may have been another tenant's before. The verdict
        // stands even if the history can't be read.
        if (auto const earlier = state.store.verifications(proved.vf, RowRange{}))
            std::ranges::copy(slower_than_before(*proved.verification, earlier->items),
                              std::back_inserter(proved.verification->warnings));
        unwritten_[id] = std::move(proved);
        keep_writing_verdict(state, id);
    });
}

void Runs::end_runs(std::vector<std::string> runs) {
    if (runs.empty()) return;
    seams().control.post([runs = std::move(runs)](Control::State& state) {
        auto const pending = state.runs();
        for (auto const& [attachment, run] : pending)
            if (std::ranges::find(runs, run.run) != runs.end()) state.erase_run(attachment);
    });
}

// The attachment may be gone, or have other settings than the run began with, which it then proves
// nothing of: the VF's history gets the verdict all the same.
Result<void> Runs::write_verdict(Control::State& state, std::string const& id) {
    auto const found = unwritten_.find(id);
    if (found == unwritten_.end()) return {};
    auto const& proved = found->second;
    auto const& verdict = *proved.verification;
    Batch batch;
    batch.save_verifications.emplace_back(proved.vf, verdict);
    batch.save_events.push_back(event_of(EventKind::verified, proved, nullptr,
                                         verdict_sentence(verdict), seams().clock.now()));
    batch.save_events.back().verdict = verdict.verdict;
    auto const entry = state.desired().attachments.find(id);
    if (entry != state.desired().attachments.end() && entry->second.settings == proved.settings) {
        batch.save_attachments.push_back(entry->second);
        batch.save_attachments.back().verification = verdict;
    }
    VFMGR_CHECK(state.commit(std::move(batch)));
    unwritten_.erase(found);
    return {};
}

void Runs::keep_writing_verdict(Control::State& state, std::string const& id) {
    if (write_verdict(state, id)) return;
    auto const again = seams().clock.steady_now() + full_disk_retry;
    seams().control.watch(again, [this, id](Control::State& later, Watch how) {
        if (operations_.stopping()) return true;
        if (how == Watch::again) return false;
        keep_writing_verdict(later, id);
        return true;
    });
}

// Starts a run and waits for its verdict, which comes from the host or from `remote`.
Result<void> Runs::prove(Operation& operation, std::vector<Verify> const& requests,
                         std::optional<RemoteEnd> const& remote) {
    auto& steps = operation.steps;
    auto const first = steps.size() - std::min(steps.size(), requests.size());
    for (auto i = first; i < steps.size(); ++i) steps[i].state = StepState::intended;
    VFMGR_TRY(auto const started, seams().control.wait([&](Control::State& state) {
        return start_runs(state, operation, requests, remote);
    }));
    std::vector<VfCounted> counted;
    for (auto const& one : started) counted.push_back({counters_of(seams(), one.attachment), {}});
    for (std::size_t i = 0; i < requests.size(); ++i) {
        auto const& [attachment, run] = started[i];
        auto report = await_report(operation.id, attachment, run, requests[i].timeout_seconds);
        if (!report && report.error().problem == Problem::timed_out && is_on_tcp(attachment.spec)) {
            counted[i].after = counters_of(seams(), attachment);
            auto const now = seams().control.snapshot();
            report.error().detail +=
                ": " + silence_of(attachment, counted[i], *now.host, *now.desired);
        }
        bool const passed = report && report->verdict == Verdict::pass;
        if (first + i < steps.size())
            steps[first + i].state = passed ? StepState::done : StepState::failed;
        if (!report) return fail(report.error());
        if (!passed) return fail(failed_verification(attachment, *report));
    }
    return {};
}

Result<std::vector<Runs::Started>> Runs::start_runs(Control::State& state,
                                                    Operation const& operation,
                                                    std::vector<Verify> const& requests,
                                                    std::optional<RemoteEnd> const& remote) {
    std::vector<Started> started;
    for (auto const& request : requests) {
        auto const attachment = state.desired().attachments.find(request.attachment);
        if (attachment == state.desired().attachments.end())
            return fail(no_such_attachment(request.attachment));
        VFMGR_CHECK(write_verdict(state, request.attachment));
        started.push_back({attachment->second, random_hex(8)});
    }
    Batch batch;
    batch.save_operations.push_back(operation);
    VFMGR_CHECK(state.commit(batch));
    auto const now = seams().clock.now();
    for (std::size_t i = 0; i < requests.size(); ++i)
        start_run(
            state, requests[i].attachment,
            {started[i].run, random_hex(16), now,
             now + std::chrono::seconds(requests[i].timeout_seconds), requests[i].profile, remote});
    return started;
}

Result<Verification> Runs::await_report(std::string const& operation, Attachment const& started,
                                        std::string const& run, std::uint32_t timeout_seconds) {
    auto const span = timed(SpanKind::guest, "the VM's report");
    auto answer = std::make_shared<std::promise<Result<Verification>>>();
    auto result = answer->get_future();
    seams().control.watch(
        seams().clock.steady_now() + std::chrono::seconds(timeout_seconds),
        [this, answer, operation, id = started.id, settings = started.settings, run,
         timeout_seconds](Control::State& state, Watch how) {
            auto const attachment = state.desired().attachments.find(id);
            if (attachment == state.desired().attachments.end())
                return answer->set_value(fail(no_such_attachment(id))), true;
            auto const& proved = attachment->second.verification;
            if (proved && proved->run == run) return answer->set_value(*proved), true;
            if (attachment->second.settings != settings)
                return answer->set_value(fail(changed_meanwhile(attachment->second))), true;
            if (operations_.stopping()) return answer->set_value(fail(vfmgrd_stops())), true;
            if (is_cancelled(seams(), operation)) {
                auto const pending = state.runs().find(id);
                if (pending != state.runs().end() && pending->second.run == run)
                    state.erase_run(id);  // the guest's session ends with it
                return answer->set_value(fail(cancelled())), true;
            }
            if (how != Watch::expired) return false;
            auto const verdict = unwritten_.find(id);
            if (verdict != unwritten_.end() && verdict->second.verification->run == run)
                return answer->set_value(*verdict->second.verification), true;
            answer->set_value(fail(no_report(attachment->second, timeout_seconds)));
            return true;
        });
    return result.get();
}

}  // namespace vfmgr
