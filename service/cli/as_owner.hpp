// SPDX-License-Identifier: Apache-2.0
// Root's dealings with what belongs to vfmgrd. One thread.
#pragma once

#include <string>

#include "api/os/handle.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// What vfmgrd leaves belongs to its user, who could name there a file that this user can't read or
// write, but root can. So root acts as the owner of the file's folder, until the result goes.
[[nodiscard]] Result<Held> as_owner_of(std::string const& file);

}  // namespace vfmgr
