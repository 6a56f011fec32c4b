// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/identities.hpp"
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

void Engine::configure_pf(Operation& operation, ReplacePfSpec const& command,
                          std::optional<std::uint64_t> if_match) {
    auto const claim = claims_.take({"pf " + to_string(command.pf)});
    auto const desired = control_->snapshot().desired;
    if (auto const same = check_revision(*desired, command.pf, if_match); !same)
        return finish(operation, fail(same.error()), {});
    auto const host = observe_for(seams_, command.pf);
    if (!host) return finish(operation, fail(host.error()), {});
    auto const plan = plan_pf(*host, *desired, command.pf, command.spec);
    if (!plan) return finish(operation, fail(plan.error()), {});
    operation.state = OperationState::running;
    operation.steps = planned_steps(*plan);
    auto const done = execute(seams_, operation, *plan, OnFailure::undo);
    if (!done) {
        auto error = done.error().error;
        if (!done.error().residue.empty())
            error.detail += fmt::format("; left behind: {}", fmt::join(done.error().residue, "; "));
        return finish(operation, fail(std::move(error)), {});
    }
    auto const now = desired->pfs.find(command.pf);
    DesiredPf pf = now == desired->pfs.end() ? DesiredPf{{}, 0, {}} : now->second;
    pf.spec = command.spec;
    pf.revision = next_revision();
    Batch batch;
    HistoryEvent configured;
    configured.at = clock_.now();
    configured.kind = EventKind::pf_configured;
    configured.pf = command.pf;
    configured.operation = operation.id;
    configured.detail = spec_sentence(command.spec);
    batch.save_events.push_back(std::move(configured));
    batch.save_pfs.emplace_back(command.pf, std::move(pf));
    keep_identity(batch, host->kernel, *desired, command.pf);
    finish(operation, {}, std::move(batch));
}

}  // namespace vfmgr
