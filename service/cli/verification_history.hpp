// SPDX-License-Identifier: Apache-2.0
// Successive runs of the RDMA tests of a VF or an attachment. Pure, except show_verifications().
// One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "service/cli/connection.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// Built from the items of a list of verifications, the latest first.
[[nodiscard]] Table verification_table(nlohmann::json const& items);
// The table, then failures and warnings, with their remedies.
[[nodiscard]] std::string verification_list_page(nlohmann::json const& items,
                                                 Options const& options);

// Gets the list at `path` and prints it.
[[nodiscard]] Result<void> show_verifications(Connection const& connection, Options const& options,
                                              std::string const& path);

}  // namespace vfmgr
