// SPDX-License-Identifier: Apache-2.0
// For the programs that systemd starts when somebody connects: vfmgr-broker and vfmgr-guestd.
#pragma once

#include <functional>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// Blocks SIGTERM and SIGINT, here and in every thread created later.
void block_ending_signals();
// Passes each connection on, and tells systemd that it is ready. Returns at one of these signals.
void accept_until_signal(int listener, std::function<void(FileDescriptor)> const& accept);
// Reports the error to the journal. Returns the exit status.
[[nodiscard]] int failed_to_start(Error const& error);

}  // namespace vfmgr
