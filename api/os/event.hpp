// SPDX-License-Identifier: Apache-2.0
// Wakes a thread that waits for descriptors, and does its waiting. Any thread.
#pragma once

#include <span>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// Readable while raised. Fails with limit_exceeded if no descriptor is left.
[[nodiscard]] Result<FileDescriptor> make_event();
void raise_event(FileDescriptor const& event);
// Clears a raised event.
void take_event(FileDescriptor const& event);

// Waits until a descriptor is readable or `deadline` passes. Errors are poll's own.
enum class Readiness { readable, deadline_passed };
[[nodiscard]] Result<Readiness> await_readable(std::span<int const> fds, Deadline deadline);

// Returns at once; an absent descriptor (-1) is never readable.
[[nodiscard]] bool is_readable(int fd);

}  // namespace vfmgr
