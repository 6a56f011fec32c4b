// SPDX-License-Identifier: Apache-2.0
// Follows an operation: prints its steps to standard error while it runs. One thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "service/cli/connection.hpp"

namespace vfmgr {

// Lists changes since the last call: "done    bind VF 2 of 0000:01:00.0 to vfio-pci".
class StepChanges {
  public:
    [[nodiscard]] std::vector<std::string> since_last(nlohmann::json const& operation);

  private:
    std::map<std::size_t, std::string> shown_;  // step -> state
};

// Returns "[3/7] bind VF 2 of 0000:01:00.0 to vfio-pci", cut to `columns`.
[[nodiscard]] std::string status_line(nlohmann::json const& operation, std::size_t columns);

// Waits for the end. Returns the operation, or why it failed. Ctrl-C ends vfctl only.
[[nodiscard]] Result<nlohmann::json> follow(Connection const& connection, Options const& options,
                                            std::string const& operation_id);

// Handles a write's answer: follows the operation of a 202 (or prints its id, with --no-wait).
// nullopt: there is nothing left to show; otherwise the operation, or null for "nothing to do".
[[nodiscard]] Result<std::optional<nlohmann::json>> settle(Connection const& connection,
                                                           Options const& options,
                                                           http::Response const& response);

// Sends a change and settles it. With --dry-run it only plans and prints the plan; there is nothing
// left to show then, either.
[[nodiscard]] Result<std::optional<nlohmann::json>> change(Connection const& connection,
                                                           Options const& options,
                                                           ApiRequest request);

}  // namespace vfmgr
