// SPDX-License-Identifier: Apache-2.0
// Gives a <hostdev> of a domain's XML another name, and leaves all else as it is. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// The domain's XML with the alias of the step, and its `managed`, on the <hostdev> at its address.
// conflict: there is none.
[[nodiscard]] Result<std::string> marked_xml(std::string_view xml, MarkHostdev const& step);

}  // namespace vfmgr
