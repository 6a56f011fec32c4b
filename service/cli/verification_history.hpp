// SPDX-License-Identifier: Apache-2.0
// Successive runs of the RDMA tests of a VF or an attachment. Pure, except show_verifications().
// One thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/verification.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// The latest first.
[[nodiscard]] Table verification_table(std::vector<Verification> const& runs);
// The table, then failures and warnings, with their remedies.
[[nodiscard]] std::string verification_list_page(std::vector<Verification> const& runs,
                                                 Options const& options);

// Gets the list at `path` and prints it.
[[nodiscard]] Result<void> show_verifications(Connection const& connection, Options const& options,
                                              std::string const& path);

}  // namespace vfmgr
