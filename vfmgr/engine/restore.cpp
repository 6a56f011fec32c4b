// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/restore.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

// VFs, then what is on them, then nothing left to do.
constexpr int rounds_max = 4;

// libvirt is not there yet at boot, and restore plans hold no step for it.
class NoHypervisor final : public Hypervisor {
  public:
    Result<HypervisorView> observe(HypervisorScope const&) override { return refuse(); }
    Result<Observed> perform(HypervisorStep const&, Deadline) override { return refuse(); }
    Result<void> settle(std::string const&, Deadline) override { return refuse(); }

  private:
    static tl::unexpected<Error> refuse() {
        return fail(Problem::unavailable, "libvirt is not asked before it has started",
                    "nothing is to be done");
    }
};

Result<std::string> restore_pf(Seams const& seams, PciAddress const& pf) {
    std::vector<std::string> done;
    for (int round = 0; round < rounds_max; ++round) {
        HostView host;
        VFMGR_TRY(host.kernel, seams.kernel.observe(std::nullopt));
        VFMGR_TRY(Plan plan, plan_restore(host, *seams.control.snapshot().desired, pf));
        done.insert(done.end(), plan.notes.begin(), plan.notes.end());
        if (plan.steps.empty()) break;
        Operation operation;
        operation.id = random_id(16);
        operation.kind = OperationKind::restore;
        operation.state = OperationState::running;
        operation.subject = "/v1/pfs/" + to_string(pf);
        operation.requested_by = "boot";
        operation.created_at = seams.clock.now();
        operation.steps = planned_steps(plan);
        auto const outcome = execute(seams, operation, plan, OnFailure::stop);
        operation.state = outcome ? OperationState::succeeded : OperationState::failed;
        if (!outcome) operation.problem = outcome.error().error;
        operation.finished_at = seams.clock.now();
        Batch batch;
        batch.save_operations.push_back(operation);
        batch.erase_records_of.push_back(operation.id);
        VFMGR_CHECK(seams.control.wait([&](Control::State& state) { return state.commit(batch); }));
        if (!outcome) return fail(outcome.error().error);
        for (auto const& step : operation.steps) done.push_back(step.sentence);
    }
    return done.empty() ? fmt::format("{}: nothing to restore", to_string(pf))
                        : fmt::format("{}: {}", to_string(pf), fmt::join(done, "; "));
}

}  // namespace

Result<std::vector<std::string>> restore(Kernel& kernel, Control& control, Clock& clock) {
    NoHypervisor nobody;
    Seams const seams{kernel, nobody, control, clock};
    std::vector<std::string> sentences;
    auto const now = control.snapshot();
    for (auto const& [pf, desired] : now.desired->pfs) {
        auto const done = restore_pf(seams, pf);
        sentences.push_back(done ? *done
                                 : fmt::format("{}: {}", to_string(pf), done.error().detail));
    }
    return sentences;
}

}  // namespace vfmgr
