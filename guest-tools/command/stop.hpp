// SPDX-License-Identifier: Apache-2.0
// How a command is stopped.
#pragma once

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::guest::command {

// Returns a descriptor that is readable after SIGTERM or SIGINT, which do nothing else from then
// on. Call it before starting any thread, so none of them is interrupted.
[[nodiscard]] Result<FileDescriptor> stop_signals();

}  // namespace vfmgr::guest::command
