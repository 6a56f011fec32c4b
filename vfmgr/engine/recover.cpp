// SPDX-License-Identifier: Apache-2.0
// After a crash: each operation that was cut short ends in the old state, the new state, or
// quarantine with the residue listed. Runs before anything is served, so nobody else changes the
// host.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/identities.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

Error cut_short(std::string const& end) {
    return {Problem::unavailable, "vfmgrd was stopped while this ran; " + end,
            "look at the host's state and ask again"};
}

// The lease that the operation is about: its subject ends with the id.
std::string lease_id(Operation const& operation) {
    return operation.subject.substr(operation.subject.rfind('/') + 1);
}

}  // namespace

Result<void> Engine::recover() {
    VFMGR_TRY(auto unfinished,
              control_->wait([](Control::State& state) { return state.store.unfinished(); }));
    auto const seen = observe_for(seams_, std::nullopt);
    if (!seen && !unfinished.empty()) return fail(seen.error());
    {
        std::lock_guard const lock(look_mutex_);
        seen_at_start_ = seen && unfinished.empty();
    }
    // Newest first: what a later operation built on an earlier one's goes first.
    for (auto one = unfinished.rbegin(); one != unfinished.rend(); ++one) recover_one(*one);
    return {};
}

void Engine::recover_one(UnfinishedOperation& unfinished) {
    auto& operation = unfinished.operation;
    // Whichever way it goes on from here. What can't be put back now is tried again by the undo, or
    // named by the kernel when a step needs it.
    static_cast<void>(put_values_back(seams_, unfinished.records));
    if (operation.kind == OperationKind::attach || operation.kind == OperationKind::detach)
        return recover_lease(unfinished);
    // What was to be restored is wanted all the same, and a PF that is gone has nothing any more.
    if (operation.kind == OperationKind::verify || operation.kind == OperationKind::restore ||
        operation.kind == OperationKind::end_gone_pf)
        return finish(operation, fail(cut_short("nothing on the host had to be undone")), {});
    auto const residue = undo_here(operation, std::move(unfinished.records));
    auto end = residue.empty()
                   ? std::string("what it had done is undone")
                   : fmt::format("this could not be undone: {}", fmt::join(residue, "; "));
    finish(operation, fail(cut_short(end)), {});
}

// The host may have been off meanwhile, and a card elsewhere.
std::vector<std::string> Engine::undo_here(Operation& operation,
                                           std::vector<JournalRecord> records) {
    auto const now = control_->snapshot();
    auto residue = take_out_others(records, *now.host, *now.desired);
    std::ranges::move(undo(seams_, operation, std::move(records)), std::back_inserter(residue));
    return residue;
}

void Engine::recover_lease(UnfinishedOperation& unfinished) {
    auto& operation = unfinished.operation;
    auto const desired = control_->snapshot().desired;
    auto const found = desired->attachments.find(lease_id(operation));
    // Crashed between the lease's end and the operation's: only the words are missing. Or a lift.
    if (found == desired->attachments.end())
        return finish(operation, fail(cut_short("the lease had ended or had not begun")), {});
    auto const lease = found->second;
    // libvirtd still executes the request that was in flight when we died: only when its job has
    // ended does the XML tell the truth (kernel-and-libvirt.md, last section).
    if (auto settled = hypervisor_.settle(lease.vm_uuid, clock_.steady_now() + 60s); !settled)
        return finish(operation, fail(settled.error()),
                      quarantined(lease, "libvirt did not settle: " + settled.error().detail,
                                  {fmt::format("VM {} may hold the VF", lease.vm_name)}));
    bool const in_vm =
        operation.kind == OperationKind::detach || lease.state != AttachmentState::attaching;
    if (in_vm) {
        auto const back = put_back(operation, lease);
        auto const end = back ? std::string("the VF was taken back") : back.error().detail;
        return finish(operation, fail(cut_short(end)), {});
    }
    auto const residue = undo_here(operation, std::move(unfinished.records));
    if (residue.empty())
        return finish(operation, fail(cut_short("what it had done is undone")), without(lease));
    finish(operation, fail(cut_short("the VF is in quarantine")),
           quarantined(lease, "an attach was cut short and could not be undone", residue));
}

}  // namespace vfmgr
