// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/no_libvirt.hpp"

namespace vfmgr {

// The variants of vfio-pci are refused by old versions of libvirt alone.
Result<HypervisorView> NoLibvirt::observe(HypervisorScope const&) {
    HypervisorView view;
    view.vfio_variants = true;
    view.observed_at = system_clock().now();
    return view;
}

Result<Observed> NoLibvirt::perform(HypervisorStep const&, Deadline) {
    return fail(Problem::unsupported, "this host has no libvirt: libvirt_uri is none",
                "attach the VF to an external holder; or set libvirt_uri in "
                "/etc/vfmgr/vfmgr.toml");
}

Result<void> NoLibvirt::settle(std::string const&, Deadline) {
    return {};
}

}  // namespace vfmgr
