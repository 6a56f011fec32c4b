// SPDX-License-Identifier: Apache-2.0
// The daemon's report on RDMA links in software, for the checks. Any thread.
#pragma once

#include "vfmgr/machine/facts.hpp"

namespace vfmgr {

// Returns what `vfctl -o csv --no-headers rdma link list` would print for this host's daemon.
[[nodiscard]] checks::CommandFact links_of_daemon();

}  // namespace vfmgr
