// SPDX-License-Identifier: Apache-2.0
// vf-guest stream: sends paced packets from one machine to another, and counts them there. Blocks;
// the main thread.
#pragma once

#include "guest-tools/cli/command_line.hpp"

namespace vfmgr::guest::command {

// Their exit status: 0 when every packet arrived, 1 when some did not or that is unknown.
void add_stream_commands(CommandLine& line);

}  // namespace vfmgr::guest::command
