// SPDX-License-Identifier: Apache-2.0
// The VM's end of cm_ping: rping's client in a process of its own (child.hpp says why). Any thread.
#pragma once

#include <string>
#include <vector>

#include "guest-tools/verify/cm_ping.hpp"

namespace vfmgr::stock {

// For verify::Measuring. `program`: words that run ping_by_cm(), to which those of the wish are
// added.
[[nodiscard]] verify::CmPinger cm_pinger(std::vector<std::string> program);

// The child: does what the words say, and tells its parent how it went. Its exit status.
[[nodiscard]] int ping_by_cm(std::vector<std::string> const& words);

}  // namespace vfmgr::stock
