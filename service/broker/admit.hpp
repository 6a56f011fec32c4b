// SPDX-License-Identifier: Apache-2.0
// What the broker refuses, whoever asks: a front that guests or a stranger have taken over asks as
// well-formed as a healthy one. Pure; any thread.
#pragma once

#include "service/broker/records.hpp"
#include "service/host_rules.hpp"

namespace vfmgr::broker {

// What admit() must know of the host besides the records.
enum class Sight { nothing, pf, pf_and_vms };
// The VMs are needed where a VM or an external holder gets a VF, and where VFs of `pf` go: setting
// their number removes all of them, unless it stays. A holder that has the VF gets it again without
// them: at a boot libvirt does not run yet.
[[nodiscard]] Sight sight_for(Records const& records, Step const& step);

// Checks that words can be no path and no markup; that the step is within the bounds, except for
// what ends an attachment and for what the VF had before its first change; that a VF was reset
// since another VM had it, that the device which a VM gets is that VF, and that no other VM's XML
// names it, whether that VM runs or not; that a VF which is named, or unplugged by its address, is
// its VM's; that VFIO nodes get no owner but one that root allows, or
// the one before. Processes that hold a VF are for the worker to find when
// it writes. `host`: as sight_for() says, observed after the step came.
[[nodiscard]] Result<void> admit(HostRules const& rules, Records const& records,
                                 HostView const& host, Step const& step);

}  // namespace vfmgr::broker
