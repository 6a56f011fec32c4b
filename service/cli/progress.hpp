// SPDX-License-Identifier: Apache-2.0
// Following an operation: its steps on standard error while it runs. One thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "service/cli/connection.hpp"

namespace vfmgr {

// What changed since the last time, as lines: "done    bind VF 2 of 0000:01:00.0 to vfio-pci".
class StepChanges {
  public:
    [[nodiscard]] std::vector<std::string> since_last(nlohmann::json const& operation);

  private:
    std::map<std::size_t, std::string> seen_;  // step -> state
};

// "[3/7] bind VF 2 of 0000:01:00.0 to vfio-pci", cut to `columns`.
[[nodiscard]] std::string status_line(nlohmann::json const& operation, std::size_t columns);

// Until it has ended: the operation, or why it failed. Ctrl-C ends vfctl, not the operation.
[[nodiscard]] Result<nlohmann::json> follow(Connection const& connection, Options const& options,
                                            std::string const& operation_id);

// What a write answered: 202 and an operation is followed (or its id printed, with --no-wait);
// nullopt: there is nothing to show any more; otherwise the operation, or null for "nothing to do".
[[nodiscard]] Result<std::optional<nlohmann::json>> settle(Connection const& connection,
                                                           Options const& options,
                                                           http::Response const& response);

// Sends a change and settles it. With --dry-run it is planned only, and the plan is printed: then,
// too, there is nothing to show any more.
[[nodiscard]] Result<std::optional<nlohmann::json>> change(Connection const& connection,
                                                           Options const& options,
                                                           ApiRequest request);

}  // namespace vfmgr
