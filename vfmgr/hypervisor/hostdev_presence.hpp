// SPDX-License-Identifier: Apache-2.0
// Checks whether a domain already has an attachment's VF, or something that forbids to add it.
// Pure.
#pragma once

#include <string>

#include "vfmgr/hypervisor/domain_xml.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

enum class Presence { absent, present };
// Which of a domain's two XMLs.
enum class XmlPart { live, config };

// present: the step's end already holds. vf_in_use: the VF is there under another alias, so it is
// another owner's. conflict: our alias names another PCI device (the VF moved since).
[[nodiscard]] Result<Presence> presence(DomainXml const& domain, XmlPart part,
                                        AttachHostdev const& step);

}  // namespace vfmgr
