// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/revision.hpp"

namespace vfmgr {
namespace {

std::string spec_sentence(PfSpec const& spec) {
    auto text = fmt::format("mode {}", enum_name(spec.mode));
    if (spec.num_vfs) text += fmt::format(", {} VFs", *spec.num_vfs);
    if (spec.vf_driver) text += fmt::format(", unused VFs on {}", *spec.vf_driver);
    return text;
}

}  // namespace

Result<void> check_unused(DesiredState const& desired, PciAddress const& pf) {
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf)
            return fail(Problem::conflict,
                        fmt::format("VF {} is attached to {} (attachment {})",
                                    to_string(attachment.vf), attachment.vm, id),
                        fmt::format("detach it first: vfctl detach {}", id));
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (vf.pf == pf)
            return fail(Problem::conflict,
                        fmt::format("VF {}, last attached to {}, is in quarantine", to_string(vf),
                                    quarantine.attachment.vm),
                        fmt::format("clean it first: vfctl vf lift-quarantine {} {}", to_string(pf),
                                    vf.index));
    return {};
}

void Pfs::configure_pf(Operation& operation, ReplacePfSpec const& command, IfMatch if_match) {
    operations_.run(operation, {command.pf}, [&]() -> Result<Batch> {
        auto const desired = seams().control.snapshot().desired;
        VFMGR_CHECK(check_revision(desired->pfs, command.pf, if_match));
        VFMGR_TRY(HostView const host, observe_for(seams(), command.pf));
        VFMGR_TRY(Plan const plan, plan_pf(host, *desired, command.pf, command.spec));
        VFMGR_CHECK(operations_.perform(operation, plan, OnFailure::undo));

        auto const now = desired->pfs.find(command.pf);
        DesiredPf pf = now == desired->pfs.end() ? DesiredPf{{}, 0, {}} : now->second;
        pf.spec = command.spec;
        pf.revision = operations_.next_revision();
        Batch batch;
        HistoryEvent configured;
        configured.at = seams().clock.now();
        configured.kind = EventKind::pf_configured;
        configured.pf = command.pf;
        configured.operation = operation.id;
        configured.detail = spec_sentence(command.spec);
        batch.save_events.push_back(std::move(configured));
        batch.save_pfs.emplace_back(command.pf, std::move(pf));
        keep_identity(batch, host.kernel, *desired, command.pf);
        return batch;
    });
}

void Pfs::forget_pf(Operation& operation, PciAddress const& pf, IfMatch if_match) {
    operations_.run(operation, {pf}, [&]() -> Result<Batch> {
        auto const desired = seams().control.snapshot().desired;
        VFMGR_CHECK(check_revision(desired->pfs, pf, if_match));
        VFMGR_CHECK(check_unused(*desired, pf));
        Batch batch;
        batch.erase_pfs.push_back(pf);
        return batch;
    });
}

}  // namespace vfmgr
