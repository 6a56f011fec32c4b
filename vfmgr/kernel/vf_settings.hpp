// SPDX-License-Identifier: Apache-2.0
// Settings of VFs: written, each refusal named, read back. A free function; the caller holds the
// PF's claim. Facts: kernel-and-libvirt.md, 4.
#pragma once

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/open_pf.hpp"
#include "vfmgr/netlink/vf.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {

// kernel_refused naming attribute, value and VF, unless the attribute is in best_effort. With a
// zero MAC (baseline) for which a driver wants another, stand_in_mac is written.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots, OpenPf& pf,
                                            ConfigureVfs const& step, Deadline deadline);

// --- pure parts, for tests ---

// The driver reports what is wanted; false when it reports nothing.
[[nodiscard]] bool holds(VfSpec const& wanted, VfSpec const& reported, VfAttribute attribute);
// What has to be written. Values that hold already are left out where drivers refuse to write even
// those (rates while the link is down, link state where there is none); a minimum rate gets the
// maximum that it needs.
[[nodiscard]] VfSpec to_write(VfSpec const& wanted, VfSpec const& reported);
// Whether to_write() may say something else for another report.
[[nodiscard]] bool depends_on_report(VfSpec const& wanted);
[[nodiscard]] std::vector<VfAttribute> attributes_of(VfSpec const& settings);
// "vlan 100 qos 3 proto 802.1ad", "trust on".
[[nodiscard]] std::string setting_text(VfSpec const& settings, VfAttribute attribute);

}  // namespace vfmgr
