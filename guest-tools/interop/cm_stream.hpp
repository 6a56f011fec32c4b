// SPDX-License-Identifier: Apache-2.0
// The host's end of cm_ping: rping's server in a process of its own, on a port that RDMA CM
// chooses, to avoid conflicts with other programs and with interop clients on the same interface.
// Any thread.
#pragma once

#include <string>
#include <vector>

#include "guest-tools/verify/stream_end.hpp"

namespace vfmgr::interop {

// For Responder::start(). `program` is the command that runs serve_rping().
[[nodiscard]] verify::OpenCmStream cm_streams(std::vector<std::string> program);

}  // namespace vfmgr::interop
