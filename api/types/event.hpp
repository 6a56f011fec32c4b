// SPDX-License-Identifier: Apache-2.0
// Waking a thread that waits for descriptors, and its waiting. Any thread.
#pragma once

#include <span>

#include "api/types/file_descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// Readable while it is raised. limit_exceeded without a descriptor for it.
[[nodiscard]] Result<FileDescriptor> make_event();
void raise_event(FileDescriptor const& event);
// What was raised has been seen.
void take_event(FileDescriptor const& event);

// Until `deadline`, readable or not: one of them. Errors are poll's own.
enum class Readiness { readable, deadline_passed };
[[nodiscard]] Result<Readiness> await_readable(std::span<int const> fds, Deadline deadline);

// Now, without waiting; no descriptor (-1) never is.
[[nodiscard]] bool is_readable(int fd);

}  // namespace vfmgr
