// SPDX-License-Identifier: Apache-2.0
// Requests that give a VM its VFs again, once libvirt has done what it refuses while the VM has
// them. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/attachment.hpp"

namespace vfmgr {

enum class SamePfs { yes, no };  // no: another host's PFs, chosen by network or pool

// Returns requests for attachments like these: the same addresses, GUIDs and settings, each on the
// same PF or, without `same`, on one that is chosen. What was verified before is verified again: to
// the end if the VM runs. Refuses an attachment that names nothing to choose another PF by.
[[nodiscard]] Result<std::vector<AttachmentSpec>> specs_again(
    std::vector<Attachment> const& attachments, SamePfs same, bool runs);

// Makes them attachments of VFs that another host's reservation keeps. Its pool chooses the PFs.
void use_reservation(std::vector<AttachmentSpec>& specs, std::string const& name);

}  // namespace vfmgr
