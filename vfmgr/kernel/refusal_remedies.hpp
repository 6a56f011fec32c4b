// SPDX-License-Identifier: Apache-2.0
// Remedies for attributes of VFs that a driver refuses. A table, each row with its source. Pure.
#pragma once

#include "api/types/pf.hpp"
#include "api/types/vf.hpp"

namespace vfmgr {

struct RefusedAttribute {
    VfAttribute attribute;
    int error = 0;  // errno
    LinkLayer link_layer = LinkLayer::ethernet;
    std::optional<EswitchMode> eswitch_mode;
    std::string pf;  // its PCI address, for commands
};
// Returns a clause without a full stop, like every remedy.
[[nodiscard]] std::string remedy_for(RefusedAttribute const& refused);

}  // namespace vfmgr
