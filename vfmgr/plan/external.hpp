// SPDX-License-Identifier: Apache-2.0
// Attachments to external holders: VMMs that libvirt does not run. vfmgr makes the VF ready and
// cleans it; what the VMM does in between it sees by the descriptors alone. Pure.
#pragma once

#include <optional>
#include <string>

#include "api/types/attachment.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// The VM or holder that the request names, for messages.
[[nodiscard]] std::string const& receiver_of(AttachmentSpec const& spec);

// What a plan must know of the VM. An external holder's has no XML, no vsock device, and instead of
// a UUID a word that no VM has; it runs when a process holds `vf`. not_found: libvirt has no such
// VM.
[[nodiscard]] Result<VmInfo> vm_for(HostView const& host, AttachmentSpec const& spec);
[[nodiscard]] Result<VmInfo> vm_of(HostView const& host, Attachment const& attachment);
void set_receiver(Attachment& attachment, VmInfo const& vm);
// Absent: its holder is external.
[[nodiscard]] std::optional<std::string> vm_uuid_of(Attachment const& attachment);

// Whose node the holder gets, opens all of its IOMMU group: refuses a uid where another function
// than a VF that nobody has shares the group.
[[nodiscard]] Result<void> check_group_of(HostView const& host, DesiredState const& desired,
                                          Attachment const& attachment);
[[nodiscard]] Error no_proof_by_external(std::string const& holder);

// The step that makes the VF the holder's, and its end. `vf`, as observed, may have no VFIO nodes
// yet.
[[nodiscard]] AttachExternal attach_external(Attachment const& attachment);
[[nodiscard]] DetachExternal detach_external(Attachment const& attachment);
// Whether the nodes of the bound VF are another user's than the holder's, and nobody holds it.
[[nodiscard]] bool lacks_its_nodes(Attachment const& attachment, VfState const& vf);

// The attachment with what its holder, if it is external, opens the VF by now.
[[nodiscard]] Attachment with_access(Attachment attachment, HostView const& host);

}  // namespace vfmgr
