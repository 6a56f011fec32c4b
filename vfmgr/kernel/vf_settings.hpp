// SPDX-License-Identifier: Apache-2.0
// Writes settings of VFs, names each refusal, reads them back. A free function; the caller holds
// the PF's claim. Facts: KERNEL.md#setting-vfs, KERNEL.md#what-drivers-do-differently.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/netlink/vf.hpp"
#include "vfmgr/plan/choose.hpp"

namespace vfmgr {

// kernel_refused naming attribute, value and VF, unless the attribute is in best_effort. If the
// driver refuses a zero MAC (baseline), quirks::stand_in_mac is written instead.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, OpenPf& pf,
                                            ConfigureVfs const& step, Deadline deadline);

// --- pure parts, for tests ---

// True when the driver reports the desired value; false when it reports nothing.
[[nodiscard]] bool holds(VfSpec const& desired, VfSpec const& reported, VfAttribute attribute);
// Returns the settings to write. Leaves out values that already hold where drivers refuse to write
// even those (rates while the link is down, link state where there is none). Adds the maximum that
// a minimum rate needs.
[[nodiscard]] VfSpec to_write(VfSpec const& desired, VfSpec const& reported);
// Whether to_write() may return something else for another report.
[[nodiscard]] bool depends_on_report(VfSpec const& desired);
[[nodiscard]] std::vector<VfAttribute> attributes_of(VfSpec const& settings);
// "vlan 100 qos 3 proto 802.1ad", "trust on".
[[nodiscard]] std::string setting_text(VfSpec const& settings, VfAttribute attribute);

}  // namespace vfmgr
