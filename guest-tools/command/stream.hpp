// SPDX-License-Identifier: Apache-2.0
// vf-guest stream: paced packets from one machine to another, counted there.
// Blocks; the main thread.
#pragma once

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

// What vf-guest leaves with: 0 when every packet came, 1 when some did not, or when nobody knows.
[[nodiscard]] int receive_stream(Options const& options);
[[nodiscard]] int send_stream(Options const& options);

}  // namespace vfmgr::guest::command
