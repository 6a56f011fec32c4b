// SPDX-License-Identifier: Apache-2.0
// vf-guest verify: proves RDMA now, over the VFs of this VM or against a served responder.
#pragma once

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "guest-tools/cli/options.hpp"

namespace vfmgr::guest::command {

// Returns vf-guest's exit status: the worst of all.
[[nodiscard]] int run_verify(Options const& options);

// Returns the ways to the host. Those over a VF are made first: it is set up, and its guest
// enrolled. Prints what fails.
[[nodiscard]] HostEnds host_of(Options const& options);

// How a command is stopped.

// Returns a descriptor that is readable after SIGTERM or SIGINT, which do nothing else from then
// on. Call it before starting any thread, so none of them is interrupted.
[[nodiscard]] Result<FileDescriptor> stop_signals();

}  // namespace vfmgr::guest::command
