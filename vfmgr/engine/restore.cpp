// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/restore.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

// First the VFs, then what is on them, until nothing is left to do.
constexpr int rounds_max = 4;
constexpr auto at_boot = "boot";

// libvirt does not run yet at boot, and restore plans have no step for it.
class NoHypervisor final : public Hypervisor {
  public:
    Result<HypervisorView> observe(HypervisorScope const&) override { return refuse(); }
    Result<Observed> perform(HypervisorStep const&, Deadline) override { return refuse(); }
    Result<void> settle(std::string const&, Deadline) override { return refuse(); }

  private:
    static tl::unexpected<Error> refuse() {
        return fail(Problem::unavailable, "libvirt is not queried before it has started",
                    "no action is needed");
    }
};

// Returns what was done.
Result<std::vector<std::string>> carry_out(Seams const& seams, Plan const& plan,
                                           std::string subject, std::string const& requested_by) {
    auto operation = new_operation(OperationKind::restore, std::move(subject), seams.clock.now());
    operation.state = OperationState::running;
    operation.requested_by = requested_by;
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
    std::vector<std::string> done;
    for (auto const& step : operation.steps) done.push_back(step.sentence);
    return done;
}

std::string summary(std::string const& what, std::vector<std::string> const& done) {
    return done.empty() ? fmt::format("{}: nothing to restore", what)
                        : fmt::format("{}: {}", what, fmt::join(done, "; "));
}

// A link whose netdev is absent, such as a bond of a network service that starts later, is left to
// the daemon, which creates it when the netdev appears.
Result<std::string> restore_link(Seams const& seams, TrustedNetdevs const& trusted,
                                 SoftRdmaLink const& link) {
    VFMGR_TRY(KernelView const view, seams.kernel.observe(HostNetwork{}));
    if (!view.network)
        return fail(Problem::unavailable, "the host's network was not read", "no action is needed");
    auto const plan = plan_rdma_link_restore(*view.network, trusted, link);
    auto done = plan.notes;
    if (!plan.steps.empty()) {
        VFMGR_TRY(done, carry_out(seams, plan, "/v1/rdma-links/" + link.name, at_boot));
    }
    return summary(link.name, done);
}

}  // namespace

Result<std::string> restore_pf(Seams const& seams, PciAddress const& pf,
                               std::string const& requested_by) {
    std::vector<std::string> done;
    for (int round = 0; round < rounds_max; ++round) {
        HostView host;
        VFMGR_TRY(host.kernel, seams.kernel.observe(std::nullopt));
        VFMGR_TRY(Plan plan, plan_restore(host, *seams.control.snapshot().desired, pf));
        done.insert(done.end(), plan.notes.begin(), plan.notes.end());
        if (plan.steps.empty()) break;
        VFMGR_TRY(auto const steps, carry_out(seams, plan, subject_of(pf), requested_by));
        done.insert(done.end(), steps.begin(), steps.end());
    }
    return summary(to_string(pf), done);
}

Result<std::vector<std::string>> restore(Kernel& kernel, Control& control, Clock& clock,
                                         TrustedNetdevs const& trusted_netdevs) {
    NoHypervisor nobody;
    Seams const seams{kernel, nobody, control, clock};
    std::vector<std::string> sentences;
    auto const now = control.snapshot();
    // Links come first: a PF without an RDMA device gets one of vfmgr's own where an attachment
    // needs it, and then can have no other of its type.
    for (auto const& [name, desired] : now.desired->rdma_links) {
        auto const done = restore_link(seams, trusted_netdevs, desired.link);
        sentences.push_back(done ? *done : fmt::format("{}: {}", name, done.error().detail));
    }
    for (auto const& [pf, desired] : now.desired->pfs) {
        auto const done = restore_pf(seams, pf, at_boot);
        sentences.push_back(done ? *done
                                 : fmt::format("{}: {}", to_string(pf), done.error().detail));
    }
    return sentences;
}

}  // namespace vfmgr
