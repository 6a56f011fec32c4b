// SPDX-License-Identifier: Apache-2.0
// What the daemon says about RDMA links in software, for the checks. Any thread.
#pragma once

#include "vfmgr/checks/facts.hpp"

namespace vfmgr {

// As if `vfctl -o csv --no-headers rdma link list` had been run, of this host's daemon.
[[nodiscard]] checks::CommandFact links_of_daemon();

}  // namespace vfmgr
