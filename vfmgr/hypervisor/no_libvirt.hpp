// SPDX-License-Identifier: Apache-2.0
// A host without libvirt, such as one that runs Proxmox: no VM can have a VF by its XML. Only root
// says so, by libvirt_uri = "none": a libvirt that does not answer may have VMs. Any thread.
#pragma once

#include "vfmgr/hypervisor/hypervisor.hpp"

namespace vfmgr {

inline constexpr auto no_libvirt_uri = "none";

class NoLibvirt final : public Hypervisor {
  public:
    Result<HypervisorView> observe(HypervisorScope const& scope) override;
    Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override;
    Result<void> settle(std::string const& vm_uuid, Deadline deadline) override;
};

}  // namespace vfmgr
