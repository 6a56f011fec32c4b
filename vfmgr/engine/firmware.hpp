// SPDX-License-Identifier: Apache-2.0
// The durable part of a change of a card's firmware. A free function; any thread.
#pragma once

#include "vfmgr/store/store.hpp"

namespace vfmgr {

// Saves the card's current tries; empty when nothing changes.
[[nodiscard]] Batch remembering(DesiredState const& desired, FirmwareCard const& card,
                                FirmwareTries tries);

}  // namespace vfmgr
