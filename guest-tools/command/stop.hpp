// SPDX-License-Identifier: Apache-2.0
// How a command is asked to end.
#pragma once

#include "api/types/file_descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::guest::command {

// Readable after SIGTERM or SIGINT, which do nothing else from now on. Before any thread is
// started, so that none of them is interrupted.
[[nodiscard]] Result<FileDescriptor> stop_signals();

}  // namespace vfmgr::guest::command
