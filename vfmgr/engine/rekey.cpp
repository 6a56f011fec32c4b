// SPDX-License-Identifier: Apache-2.0
// Moves the stored state of a PF to its current address.
#include "vfmgr/plan/rekey.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/restore.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

ClaimKeys keys_of(std::vector<PfMove> const& moves, DesiredState const& desired) {
    ClaimKeys keys;
    for (auto const& move : moves) {
        keys.insert({move.from, move.to});
        for (auto const& attachment : attachments_of_pf(desired, move.from))
            keys.merge(claims_on(attachment));
    }
    return keys;
}

template <class Value>
void add_changes(std::map<PciAddress, Value> const& before,
                 std::map<PciAddress, Value> const& after,
                 std::vector<std::pair<PciAddress, Value>>& save, std::vector<PciAddress>& erase) {
    for (auto const& [pf, value] : after)
        if (auto const was = before.find(pf); was == before.end() || !(was->second == value))
            save.emplace_back(pf, value);
    for (auto const& [pf, value] : before)
        if (!after.contains(pf)) erase.push_back(pf);
}

// Returns the changes from `before` to `after`. It erases only what it does not save, because PFs
// may have swapped.
Batch changes_of(DesiredState const& before, DesiredState const& after) {
    Batch batch;
    add_changes(before.pfs, after.pfs, batch.save_pfs, batch.erase_pfs);
    add_changes(before.identities, after.identities, batch.save_identities, batch.erase_identities);
    add_changes(before.firmware_tries, after.firmware_tries, batch.save_firmware_tries,
                batch.erase_firmware_tries);
    for (auto const& [name, network] : after.networks)
        if (!(before.networks.at(name) == network)) batch.save_networks.push_back(network);
    for (auto const& [id, attachment] : after.attachments)
        if (!(before.attachments.at(id) == attachment))
            batch.save_attachments.push_back(attachment);
    for (auto const& [vf, quarantine] : after.quarantine)
        if (auto const was = before.quarantine.find(vf);
            was == before.quarantine.end() || !(was->second == quarantine))
            batch.save_quarantines.push_back(quarantine);
    for (auto const& [vf, quarantine] : before.quarantine)
        if (!after.quarantine.contains(vf)) batch.erase_quarantines.push_back(vf);
    return batch;
}

Error moved_again() {
    return {Problem::conflict, "the PFs moved, or their attachments changed, meanwhile",
            "try again"};
}

}  // namespace

// Creates the VFs first, since their addresses are unknown before.
Result<RekeyPlan> Pfs::begin_rekey(Operation& operation, RekeyPf const& command,
                                   std::vector<PfMove> const& claimed) {
    for (bool made = false;; made = true) {
        VFMGR_TRY(HostView host, observe_for(seams(), std::nullopt));
        VFMGR_TRY(RekeyPlan plan,
                  plan_rekey(host, *seams().control.snapshot().desired, command.from, command.to));
        if (plan.moves != claimed) return fail(moved_again());
        if (!plan.makes_vfs) return plan;
        if (made)
            return fail(Problem::kernel_refused, "fewer VFs were created than are needed",
                        "see the kernel's log for the reason: journalctl -k");
        VFMGR_CHECK(operations_.perform(operation, plan.plan, OnFailure::undo));
        Batch batch;
        batch.erase_records_of.push_back(operation.id);
        batch.save_operations.push_back(operation);
        if (!operations_.commit_at_last(batch)) return fail(vfmgrd_stops());
    }
}

// Changes the XML next, and undoes that unless all of it succeeds; then moves the stored state, and
// does what a boot would do for the PF.
void Pfs::rekey(Operation& operation, RekeyPf const& command) {
    auto const before = seams().control.snapshot();
    auto const first = plan_rekey(*before.host, *before.desired, command.from, command.to);
    if (!first) return operations_.finish(operation, fail(first.error()), {});
    auto const claim = operations_.claims().take(keys_of(first->moves, *before.desired));
    auto const plan = begin_rekey(operation, command, first->moves);
    if (!plan) return operations_.finish(operation, fail(plan.error()), {});
    if (auto const changed = operations_.perform(operation, plan->plan, OnFailure::undo); !changed)
        return operations_.finish(operation, changed, {});
    auto const host = seams().control.snapshot().host;
    auto const revision = operations_.next_revision();
    auto const written = operations_.commit_at_last([&](DesiredState const& desired) {
        auto batch = changes_of(desired, rekeyed(*host, desired, plan->moves));
        for (auto& [pf, kept] : batch.save_pfs) kept.revision = revision;
        for (auto& network : batch.save_networks) network.revision = revision;
        batch.save_operations.push_back(operation);
        batch.erase_records_of.push_back(operation.id);
        for (auto const& move : plan->moves)
            batch.save_events.push_back(
                event_of(EventKind::pf_rekeyed, move.to, operation,
                         fmt::format("what is stored of PF {} moved here", to_string(move.from)),
                         seams().clock.now()));
        return batch;
    });
    if (!written) return;
    std::vector<std::string> left;
    for (auto const& move : plan->moves) {
        auto const restored = restore_pf(seams(), move.to, operation.requested_by);
        if (!restored)
            left.push_back(fmt::format("{}: {}", to_string(move.to), restored.error().detail));
    }
    if (left.empty()) return operations_.finish(operation, {}, {});
    operations_.finish(
        operation,
        fail(Problem::kernel_refused,
             fmt::format("the stored state was moved, but VFs could not be set up for it: {}",
                         fmt::join(left, "; ")),
             "fix what is named, then: systemctl start vfmgr-restore"),
        {});
}

}  // namespace vfmgr
