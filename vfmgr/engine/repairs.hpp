// SPDX-License-Identifier: Apache-2.0
// Drift that an observation finds: reported once, and repaired where the PF's mode or the tenants'
// safety demands it. Owned by the engine; on the control thread, except for observe_drift() and
// name_owners(), which the observer calls, and the repairs' operations.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/engine/drift.hpp"
#include "vfmgr/engine/repair.hpp"

namespace vfmgr {

// Finds in configuration files what else makes or changes VFs of these PFs. Reads the files once
// for all PFs. Blocks for a moment, on the observer's thread, when there is new drift.
using FindOwners = std::function<OwnersOfPfs(std::vector<PfInfo> const&)>;

class Repairs : public EnginePart {
  public:
    Repairs(Operations& operations, Attachments::Submit submit, FindOwners find_owners)
        : EnginePart(operations),
          submit_(std::move(submit)),
          find_owners_(std::move(find_owners)) {}

    // Finds drift that no running operation explains.
    [[nodiscard]] DriftWatch::Observed observe_drift();
    void name_owners(DriftWatch::Observed& observed);
    void report_drift(Control::State& state, DriftWatch::Observed const& observed);
    void repair_drift(Control::State& state, DriftWatch::Observed const& observed);
    // True when the repair runs, or will run as soon as it may: what depends on it waits for it. A
    // refused plan counts as a failure, and is reported once.
    bool begin_repair(Control::State& state, HostView const& host, Repair repair);

  private:
    void repair_drift_of(Control::State& state, HostView const& host, PciAddress const& pf,
                         DriftWatch::Observed const& observed);
    void rebind_adopted(Control::State& state, HostView const& host, PciAddress const& pf,
                        DriftWatch::Observed const& observed);
    void close_again(Control::State& state, HostView const& host, PciAddress const& pf,
                     DriftWatch::Observed const& observed);
    [[nodiscard]] Repair repair_of_filter(PciAddress const& pf,
                                          std::optional<std::uint64_t> because_of) const;
    [[nodiscard]] Repair repair_of_pf(PciAddress const& pf,
                                      std::optional<std::uint64_t> because_of) const;
    [[nodiscard]] Repair repair_of_attachment(Attachment const& attachment,
                                              std::optional<std::uint64_t> because_of);
    void report_refused(Control::State& state, Event event, Error const& why);
    void do_repair(Operation& operation, Repair const& repair);
    [[nodiscard]] Result<void> plan_and_do(Operation& operation, Repair const& repair);

    Attachments::Submit const submit_;
    FindOwners const find_owners_;
    RepairPace pace_;                       // control thread only
    DriftWatch drift_watch_;                // control thread only
    OwnersOfPfs owners_;                    // observer's thread only
    std::set<std::string> drift_observed_;  // the same
};

}  // namespace vfmgr
