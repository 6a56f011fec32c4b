// SPDX-License-Identifier: Apache-2.0
// Ends the attachments of a PF that an admin declares gone, and deletes its stored state when the
// admin confirms it.
#include "vfmgr/plan/pf_standing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

constexpr auto gone_reason = "its PF is gone";

ClaimKeys keys_of(PciAddress const& pf, std::vector<Attachment> const& attachments) {
    ClaimKeys keys{pf};
    for (auto const& attachment : attachments) keys.merge(claims_on(attachment));
    return keys;
}

// Returns a sentence for each step of this attachment that was not done.
std::vector<std::string> left_of(Plan const& plan, Operation const& operation,
                                 std::string const& attachment) {
    std::vector<std::string> residue;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        auto const* const detach = as<DetachHostdev>(plan.steps[i]);
        if (detach && detach->attachment == attachment &&
            operation.steps[i].state != StepState::done)
            residue.push_back("still to do: " + operation.steps[i].sentence);
    }
    return residue;
}

void append(Batch& to, Batch&& from) {
    std::ranges::move(from.erase_attachments, std::back_inserter(to.erase_attachments));
    std::ranges::move(from.save_quarantines, std::back_inserter(to.save_quarantines));
    std::ranges::move(from.save_events, std::back_inserter(to.save_events));
}

// A VF that was in quarantine before keeps its earlier reasons.
Quarantine after_gone(DesiredState const& desired, Attachment const& attachment,
                      std::vector<std::string> residue, Time now) {
    auto const earlier = desired.quarantine.find(attachment.vf);
    if (earlier == desired.quarantine.end())
        return {attachment.vf, attachment, gone_reason, std::move(residue), now};
    auto quarantine = earlier->second;
    if (quarantine.reason == gone_reason) quarantine.residue = std::move(residue);
    return quarantine;
}

// Takes the PF out of the networks as they are now: requests change them without a claim.
Batch out_of_networks(Control::State& state, PciAddress const& pf) {
    Batch batch;
    for (auto [name, desired] : state.desired().networks) {
        auto const carries = [&](NetworkPf const& on) { return on.pf == pf; };
        if (std::erase_if(desired.network.pfs, carries) == 0) continue;
        desired.revision = state.next_revision();
        batch.save_networks.push_back(std::move(desired));
    }
    return batch;
}

}  // namespace

// Turns attachments into quarantines before it touches anything, so that a crash leaves quarantines
// that name what is still to be done. The command may be repeated.
void Pfs::end_gone(Operation& operation, PciAddress const& pf) {
    auto const claim = operations_.claims().take(
        keys_of(pf, attachments_of_pf(*seams().control.snapshot().desired, pf)));
    auto const host = observe_for(seams(), std::nullopt);
    if (!host) return operations_.finish(operation, fail(host.error()), {});
    auto const desired = seams().control.snapshot().desired;
    auto const plan = plan_gone(*host, *desired, pf);
    if (!plan) return operations_.finish(operation, fail(plan.error()), {});
    operation.state = OperationState::running;
    operation.steps = planned_steps(*plan);
    auto const attached = attachments_of_pf(*desired, pf);
    Batch begin;
    for (auto const& attachment : attached)
        if (desired->attachments.contains(attachment.id))
            append(begin, attachments_.quarantined({attachment}, gone_reason,
                                                   left_of(*plan, operation, attachment.id)));
    begin.save_operations.push_back(operation);
    if (!operations_.commit_at_last(begin)) return;
    seams().control.wait([&](Control::State& state) {
        for (auto const& attachment : attached) state.erase_run(attachment.id);
        return true;
    });
    auto const done = execute(seams(), operation, *plan, OnFailure::go_on);
    Batch end;
    for (auto const& attachment : attached)
        end.save_quarantines.push_back(after_gone(
            *desired, attachment, left_of(*plan, operation, attachment.id), seams().clock.now()));
    if (done) return operations_.finish(operation, {}, std::move(end));
    auto error = done.error().error;
    error.detail = fmt::format("{}", fmt::join(done.error().residue, "; "));
    error.remedy = fmt::format("fix what is named, then again: vfctl pf gone {}", to_string(pf));
    operations_.finish(operation, fail(std::move(error)), std::move(end));
}

void Pfs::confirm_gone(Operation& operation, PciAddress const& pf) {
    auto const before = seams().control.snapshot().desired;
    operations_.run(operation, keys_of(pf, attachments_of_pf(*before, pf)), [&]() -> Result<Batch> {
        VFMGR_TRY(HostView const host, observe_for(seams(), std::nullopt));
        auto const desired = seams().control.snapshot().desired;
        VFMGR_CHECK(plan_gone_confirmed(host, *desired, pf));
        Batch batch;
        batch.erase_pfs.push_back(pf);
        batch.erase_identities.push_back(pf);
        batch.erase_firmware_tries.push_back(pf);
        for (auto const& attachment : attachments_of_pf(*desired, pf))
            batch.erase_quarantines.push_back(attachment.vf);
        batch.save_events.push_back(event_of(EventKind::pf_forgotten, pf, operation,
                                             "the PF is gone, and nothing is stored of it any more",
                                             seams().clock.now()));
        VFMGR_CHECK(seams().control.wait(
            [&](Control::State& state) { return state.commit(out_of_networks(state, pf)); }));
        return batch;
    });
}

}  // namespace vfmgr
