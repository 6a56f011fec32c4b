// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/plan/free_vfs.hpp"

namespace vfmgr {
namespace {

std::string spec_sentence(PfSpec const& spec) {
    auto text = fmt::format("mode {}", enum_name(spec.mode));
    if (spec.num_vfs) text += fmt::format(", {} VFs", *spec.num_vfs);
    if (!spec.free_vfs.empty())
        text += fmt::format(", settings for {} of them", spec.free_vfs.size());
    if (spec.vf_driver) text += fmt::format(", unused VFs on {}", *spec.vf_driver);
    return text;
}

}  // namespace

Event configured_event(PciAddress const& pf, PfSpec const& spec, Operation const& operation,
                       Time at) {
    return event_of(EventKind::pf_configured, pf, operation, spec_sentence(spec), at);
}

Event forgotten_event(PciAddress const& pf, Operation const& operation, Time at) {
    return event_of(EventKind::pf_forgotten, pf, operation, "vfmgr no longer manages the PF", at);
}

void Pfs::configure_pf(Operation& operation, ReplacePfSpec const& command,
                       IfMatch const& if_match) {
    operations_.run(operation, {command.pf}, [&]() -> Result<Batch> {
        operations_.pledge(operation, settings_of_free(command.spec));
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
        batch.save_events.push_back(
            configured_event(command.pf, command.spec, operation, seams().clock.now()));
        batch.save_pfs.emplace_back(command.pf, std::move(pf));
        keep_identity(batch, host.kernel, *desired, command.pf);
        return batch;
    });
}

void Pfs::forget_pf(Operation& operation, PciAddress const& pf, IfMatch const& if_match) {
    operations_.run(operation, {pf}, [&]() -> Result<Batch> {
        auto const desired = seams().control.snapshot().desired;
        VFMGR_CHECK(check_revision(desired->pfs, pf, if_match));
        VFMGR_CHECK(check_unused(*desired, pf));
        Batch batch;
        batch.erase_pfs.push_back(pf);
        batch.save_events.push_back(forgotten_event(pf, operation, seams().clock.now()));
        return batch;
    });
}

}  // namespace vfmgr
