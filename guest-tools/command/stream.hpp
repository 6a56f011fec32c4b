// SPDX-License-Identifier: Apache-2.0
// vf-guest stream: sends paced packets from one machine to another, and counts them there. Blocks;
// the main thread.
#pragma once

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

// Return vf-guest's exit status: 0 when every packet arrived, 1 when some did not or that is
// unknown.
[[nodiscard]] int receive_stream(Options const& options);
[[nodiscard]] int send_stream(Options const& options);

}  // namespace vfmgr::guest::command
