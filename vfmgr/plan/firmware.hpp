// SPDX-License-Identifier: Apache-2.0
// Plans a change of a card's firmware settings. Pure, like plan.hpp: what was read from the card
// comes in as a value. Nothing here ever resets a card.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// A setting that did not hold after it was requested in this many boots is not tried again.
inline constexpr std::size_t firmware_boots_max = 2;

struct FirmwarePlan {
    Plan plan;            // without steps: the card has all of it already, or takes it over at its
                          // next reset
    FirmwareTries tries;  // to be stored for the card before anything is done; may be empty
};

// Refuses a setting that this card lacks, a card with VFs in use on any port, a port that is only
// observed, a value that a port's spec contradicts, and one that did not hold in two boots.
[[nodiscard]] Result<FirmwarePlan> plan_firmware(HostView const& host, DesiredState const& desired,
                                                 FirmwareCard const& card,
                                                 FirmwareSettings const& requested);

// Absent: the card, or its tool, does not report the current values.
[[nodiscard]] std::optional<FirmwarePending> pending_of(DesiredState const& desired,
                                                        FirmwareCard const& card);
// Returns one sentence for each use of any of the card's ports: "VF 2 of enp1s0 is attached to vm1
// (attachment …)".
[[nodiscard]] std::vector<std::string> card_uses(HostView const& host, DesiredState const& desired,
                                                 FirmwareCard const& card);

}  // namespace vfmgr
