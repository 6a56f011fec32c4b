// SPDX-License-Identifier: Apache-2.0
// The VM's end of cm_ping: rping's client in a process of its own (child.hpp explains why). Any
// thread.
#pragma once

#include <string>
#include <vector>

#include "guest-tools/verify/cm_ping.hpp"

namespace vfmgr::interop {

// For verify::Measuring. `program` is the command that runs ping_by_cm(); the options are appended
// as further words.
[[nodiscard]] verify::CmPinger cm_pinger(std::vector<std::string> program);

// Runs in the child: pings as the words request, and reports the result to the parent. Returns the
// exit status.
[[nodiscard]] int ping_by_cm(std::vector<std::string> const& words);

}  // namespace vfmgr::interop
