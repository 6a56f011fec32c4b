// SPDX-License-Identifier: Apache-2.0
// The host's end of cm_ping: rping's server in a process of its own, on a port that RDMA CM
// chooses, so that it is in nobody's way; not in that of stock clients on the same leg either. Any
// thread.
#pragma once

#include <string>
#include <vector>

#include "guest-tools/verify/stream_end.hpp"

namespace vfmgr::stock {

// For Responder::start(). `program`: words that run serve_rping().
[[nodiscard]] verify::OpenCmStream cm_streams(std::vector<std::string> program);

}  // namespace vfmgr::stock
