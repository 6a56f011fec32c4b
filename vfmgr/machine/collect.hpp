// SPDX-License-Identifier: Apache-2.0
// Reads a machine for the checks: what sources.hpp lists. It opens nothing for writing, sends only
// GET requests to netlink, and starts no daemon. Any user may run it; failed reads are in the facts
// with their errno. Blocks for tens of milliseconds, commands for seconds at most; any thread.
#pragma once

#include <functional>
#include <string>

#include "vfmgr/machine/facts.hpp"

namespace vfmgr::checks {

struct Collection {
    CheckedMachine machine = CheckedMachine::host;
    std::string root{};  // prefix of every path: a tree copied from a machine; empty: this machine
    // With a root, only files are collected: no netlink, no commands.

    // Returns what `vfctl rdma link list` would print, for a caller that can ask the daemon itself:
    // vfctl takes longer to start than to query. Runs in another thread. Empty: vfctl is run.
    std::function<CommandFact()> rdma_links{};
};
[[nodiscard]] Facts collect(Collection const& what);
// Reads only which processes hold VFIO devices on this machine.
[[nodiscard]] Facts collect_vfio_holders();

}  // namespace vfmgr::checks
