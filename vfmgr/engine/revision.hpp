// SPDX-License-Identifier: Apache-2.0
// Whether a change was made from what is wanted now: asked at admission, and once more under the
// claim, since another change may have been ahead in the queue. Free functions; any thread.
#pragma once

#include <optional>

#include "api/types/problem.hpp"
#include "vfmgr/plan/desired_state.hpp"

namespace vfmgr {

// What is not wanted yet is at revision 0. Without `if_match` any revision will do.
[[nodiscard]] Result<void> check_revision(DesiredState const& desired, PciAddress const& pf,
                                          std::optional<std::uint64_t> if_match);
[[nodiscard]] Result<void> check_revision(DesiredState const& desired, std::string const& link,
                                          std::optional<std::uint64_t> if_match);

}  // namespace vfmgr
