// SPDX-License-Identifier: Apache-2.0
// What is durable of a change of a card's firmware. A free function; any thread.
#pragma once

#include "vfmgr/store/store.hpp"

namespace vfmgr {

// The tries of the card as they are now; empty where nothing changes.
[[nodiscard]] Batch remembering(DesiredState const& desired, FirmwareCard const& card,
                                FirmwareTries tries);

}  // namespace vfmgr
