// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the members of a VfSpec. Pure.
#pragma once

#include "api/types/vf_spec.hpp"

namespace vfmgr {

// The members of `values` that `mask` has: "what was there, of what will be set".
[[nodiscard]] VfSpec only_members_of(VfSpec const& mask, VfSpec values);
// The members of `want` whose value is not the one in `now`.
[[nodiscard]] VfSpec differing(VfSpec want, VfSpec const& now);

}  // namespace vfmgr
