// SPDX-License-Identifier: Apache-2.0
// Is this VM ready for RDMA: `doctor`, and what it read as a bundle for somebody else.
#pragma once

#include "guest-tools/command/options.hpp"
#include "vfmgr/checks/facts.hpp"

namespace vfmgr::guest::command {

// A bundle's, by its file's name; of this VM where it is empty.
[[nodiscard]] Result<checks::Facts> facts_of(std::string const& bundle);

// What vf-guest leaves with: 1 when a check fails.
[[nodiscard]] int run_doctor(Options const& options);
// Which RDMA port is which netdev and PCI function.
[[nodiscard]] int list_rdma(Options const& options);
// Writes options.bundle_file; "-" is standard output.
[[nodiscard]] int write_bundle(Options const& options);

}  // namespace vfmgr::guest::command
