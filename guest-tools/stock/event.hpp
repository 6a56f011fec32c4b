// SPDX-License-Identifier: Apache-2.0
// Waking a thread that waits for descriptors, and its waiting. Any thread.
#pragma once

#include <poll.h>

#include <span>

#include "api/types/file_descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::stock {

// limit_exceeded without a descriptor for it.
[[nodiscard]] Result<FileDescriptor> make_event();
void raise(FileDescriptor const& event);
// What was raised has been seen.
void take_event(FileDescriptor const& event);
// Whether one of them is readable before the deadline.
[[nodiscard]] bool wait_readable(std::span<pollfd> watched, Deadline deadline);

}  // namespace vfmgr::stock
