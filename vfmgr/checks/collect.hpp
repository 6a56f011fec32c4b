// SPDX-License-Identifier: Apache-2.0
// Reads a machine for the checks: what wanted.hpp lists. It opens nothing for writing, asks netlink
// only to get, and starts no daemon. Any user may: what it was not allowed to see is in the facts
// with its errno. Blocks for tens of milliseconds, commands for seconds at most; any thread.
#pragma once

#include <functional>
#include <string>

#include "vfmgr/checks/facts.hpp"

namespace vfmgr::checks {

struct Collection {
    CheckedMachine machine = CheckedMachine::host;
    std::string root{};  // before every path: a tree copied from a machine; empty: this machine
    // With a root, what is no file is not collected: netlink, commands.

    // What `vfctl rdma link list` would print, from who can ask the daemon itself: vfctl's start
    // takes longer than the question. Runs in another thread. Empty: vfctl is run.
    std::function<CommandFact()> rdma_links{};
};
[[nodiscard]] Facts collect(Collection const& what);
// Only the configuration files that tell who else makes VFs, of a machine or below `root`; of this
// machine, whether the services run whose files they are.
[[nodiscard]] Facts collect_owners(std::string const& root);
// Only who holds VFIO devices on this machine.
[[nodiscard]] Facts collect_vfio_holders();

}  // namespace vfmgr::checks
