// SPDX-License-Identifier: Apache-2.0
// Data that takes so long to read that it is read only on request: all that the checks read, the
// cards' firmware, and what went through the VFs. Owned by run(); any thread may ask.
#pragma once

#include "api/types/firmware.hpp"
#include "api/types/vf.hpp"
#include "service/on_demand.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr {

using HostChecks = OnDemand<checks::Facts>;
using FirmwareQuery = OnDemand<Result<std::vector<FirmwareCard>>>;
using TrafficQuery = OnDemand<Result<std::vector<PfTraffic>>>;

}  // namespace vfmgr
