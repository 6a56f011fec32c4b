// SPDX-License-Identifier: Apache-2.0
// Which attachments nobody holds any more. Pure.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// The principal of what a VM's metadata requests, "metadata:<uuid>".
[[nodiscard]] std::string principal_of_metadata(std::string const& vm_uuid);
// Whether the VM declared the attachment: it then ends with the VM's start.
[[nodiscard]] bool is_declared(Attachment const& attachment);

// Whether libvirt's VMs were observed; what was not observed is in use.
[[nodiscard]] bool knows_vms(HypervisorView const& view);
// Whether neither the running VM nor a process has the VF. False while that can't be read.
[[nodiscard]] bool is_released(HostView const& host, Attachment const& attachment);
// The ids of attachments that are to end once they are released, and are: those in state detaching,
// and declared ones.
[[nodiscard]] std::vector<std::string> released(HostView const& host, DesiredState const& desired);

}  // namespace vfmgr
