// SPDX-License-Identifier: Apache-2.0
// What takes so long to look at that it is looked at only when somebody asks: all that the checks
// read, and the firmware of cards. Owned by run(); any thread may ask.
#pragma once

#include "api/types/firmware.hpp"
#include "service/look.hpp"
#include "vfmgr/checks/facts.hpp"

namespace vfmgr {

using HostChecks = Look<checks::Facts>;
using FirmwareLook = Look<Result<std::vector<FirmwareCard>>>;

}  // namespace vfmgr
