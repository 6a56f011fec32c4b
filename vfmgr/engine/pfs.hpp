// SPDX-License-Identifier: Apache-2.0
// PFs: their specs, their identities, and what becomes of what is stored of one that is gone or has
// moved. Each method is the body of an operation and runs on its thread, unless it takes a
// Control::State. Owned by the engine.
#pragma once

#include <vector>

#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/plan/rekey.hpp"

namespace vfmgr {

class Pfs {
  public:
    Pfs(Operations& operations, Attachments& attachments)
        : operations_(operations), attachments_(attachments) {}
    Pfs(Pfs const&) = delete;
    Pfs& operator=(Pfs const&) = delete;

    void configure_pf(Operation& operation, ReplacePfSpec const& command, IfMatch if_match);
    void forget_pf(Operation& operation, PciAddress const& pf, IfMatch if_match);
    void end_gone(Operation& operation, PciAddress const& pf);
    void confirm_gone(Operation& operation, PciAddress const& pf);
    void rekey(Operation& operation, RekeyPf const& command);
    // Stores PFs' identities, from the first observation that reads them and for as long as
    // anything is stored of the PFs.
    void learn_identities(Control::State& state);

  private:
    [[nodiscard]] Seams const& seams() const { return operations_.seams(); }
    [[nodiscard]] Result<RekeyPlan> begin_rekey(Operation& operation, RekeyPf const& command,
                                                std::vector<PfMove> const& claimed);

    Operations& operations_;
    Attachments& attachments_;
};

// A PF with attachments or quarantines is not removed: cleaning them needs its stored state.
[[nodiscard]] Result<void> check_unused(DesiredState const& desired, PciAddress const& pf);

}  // namespace vfmgr
