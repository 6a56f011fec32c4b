// SPDX-License-Identifier: Apache-2.0
// PFs: their specs, their cards' firmware, their identities, and what happens to the stored state
// of a PF that is gone or has moved. Each method is the body of an operation and runs on its
// thread, unless it takes a Control::State. Owned by the engine.
#pragma once

#include <vector>

#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/plan/rekey.hpp"

namespace vfmgr {

class Pfs : public EnginePart {
  public:
    Pfs(Operations& operations, Attachments& attachments)
        : EnginePart(operations), attachments_(attachments) {}

    void configure_pf(Operation& operation, ReplacePfSpec const& command, IfMatch const& if_match);
    // Plans again under the claims of all of the card's ports, from what it reports then.
    void configure_firmware(Operation& operation, ChangeFirmware const& command);
    void forget_pf(Operation& operation, PciAddress const& pf, IfMatch const& if_match);
    void end_gone(Operation& operation, PciAddress const& pf);
    void confirm_gone(Operation& operation, PciAddress const& pf);
    void rekey(Operation& operation, RekeyPf const& command);
    // Stores PFs' identities, from the first observation that reads them and for as long as
    // anything is stored of the PFs.
    void learn_identities(Control::State& state);

  private:
    [[nodiscard]] Result<Plan> begin_firmware(Operation& operation, ChangeFirmware const& command);
    [[nodiscard]] Result<RekeyPlan> begin_rekey(Operation& operation, RekeyPf const& command,
                                                std::vector<PfMove> const& claimed);

    Attachments& attachments_;
};

// "pf_configured", with what is desired now.
[[nodiscard]] Event configured_event(PciAddress const& pf, PfSpec const& spec,
                                     Operation const& operation, Time at);
// "pf_forgotten", of a PF that is still there.
[[nodiscard]] Event forgotten_event(PciAddress const& pf, Operation const& operation, Time at);
// Stores how often a card's settings were tried, if that has changed: what never holds is not set
// for ever.
[[nodiscard]] Batch remembering(DesiredState const& desired, FirmwareCard const& card,
                                FirmwareTries tries);

}  // namespace vfmgr
