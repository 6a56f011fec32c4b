// SPDX-License-Identifier: Apache-2.0
// Is an attachment's VF in a domain already, or something that forbids to put it there? Pure.
#pragma once

#include <string>

#include "vfmgr/hypervisor/domain_xml.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

enum class Presence { absent, present };
// Which of a domain's two XMLs.
enum class XmlPart { live, config };

// present: the step's end already holds. vf_in_use: the VF is there under another alias, so it is
// somebody else's. conflict: our alias names another PCI device (the VF moved since).
[[nodiscard]] Result<Presence> presence(DomainXml const& domain, XmlPart part,
                                        AttachHostdev const& step);

}  // namespace vfmgr
