// SPDX-License-Identifier: Apache-2.0
// Whether this VM is ready for RDMA: `doctor`, and the facts that it read as a bundle for others.
#pragma once

#include "guest-tools/command/options.hpp"
#include "vfmgr/checks/facts.hpp"

namespace vfmgr::guest::command {

// Returns the facts of a bundle, by its file's name; of this VM where it is empty.
[[nodiscard]] Result<checks::Facts> facts_of(std::string const& bundle);

// Returns vf-guest's exit status: 1 when a check fails.
[[nodiscard]] int run_doctor(Options const& options);
// Lists which RDMA port is which netdev and PCI function.
[[nodiscard]] int list_rdma(Options const& options);
// Writes options.bundle_file; "-" is standard output.
[[nodiscard]] int write_bundle(Options const& options);

}  // namespace vfmgr::guest::command
