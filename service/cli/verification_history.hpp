// SPDX-License-Identifier: Apache-2.0
// Runs of the RDMA tests, one after the other: of a VF, of an attachment. Pure but for the one that
// asks and prints. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "service/cli/connection.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// From the items of a list of verifications, the latest first.
[[nodiscard]] Table verification_table(nlohmann::json const& items);
// The table, then what failed or warned, with its remedy.
[[nodiscard]] std::string verification_list_page(nlohmann::json const& items,
                                                 Options const& options);

// Asks for the list at `path` and prints it.
[[nodiscard]] Result<void> show_verifications(Connection const& connection, Options const& options,
                                              std::string const& path);

}  // namespace vfmgr
