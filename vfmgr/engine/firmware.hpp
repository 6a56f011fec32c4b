// SPDX-License-Identifier: Apache-2.0
// Firmware settings of cards: changed under the claims of all of a card's ports, and counted, so
// that what never holds is not set for ever. Owned by the engine; an operation's thread.
#pragma once

#include "vfmgr/engine/operations.hpp"

namespace vfmgr {

class CardFirmware {
  public:
    explicit CardFirmware(Operations& operations) : operations_(operations) {}
    CardFirmware(CardFirmware const&) = delete;
    CardFirmware& operator=(CardFirmware const&) = delete;

    void configure_firmware(Operation& operation, ChangeFirmware const& command);

  private:
    [[nodiscard]] Seams const& seams() const { return operations_.seams(); }
    [[nodiscard]] Result<Plan> begin_firmware(Operation& operation, ChangeFirmware const& command);

    Operations& operations_;
};

// Stores how often something was tried, as far as that is news.
[[nodiscard]] Batch remembering(DesiredState const& desired, FirmwareCard const& card,
                                FirmwareTries tries);

}  // namespace vfmgr
