// SPDX-License-Identifier: Apache-2.0
// Follows an operation: prints its steps to standard error while it runs. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/operation.hpp"
#include "service/cli/connection.hpp"

namespace vfmgr {

// Lists changes since the last call: "done    bind VF 2 of 0000:01:00.0 to vfio-pci".
class StepChanges {
  public:
    [[nodiscard]] std::vector<std::string> since_last(Operation const& operation);

  private:
    std::map<std::size_t, StepState> shown_;  // step -> state
};

// Returns "[3/7] bind VF 2 of 0000:01:00.0 to vfio-pci", cut to `columns`.
[[nodiscard]] std::string status_line(Operation const& operation, std::size_t columns);

// An operation that has succeeded.
struct Done {
    Operation operation;
    std::string body;  // as the API returned it
};
// Waits for the end. Returns the operation, or why it failed. Ctrl-C ends vfctl only.
[[nodiscard]] Result<Done> follow(Connection const& connection, Options const& options,
                                  std::string const& operation_id);

// What became of a write.
struct Settled {
    bool shown = false;          // there is nothing left to show: a dry run, or --no-wait
    std::optional<Done> done{};  // absent without `shown`: there was nothing to do
};
// Handles a write's answer: follows the operation of a 202, or prints its id, with --no-wait.
[[nodiscard]] Result<Settled> settle(Connection const& connection, Options const& options,
                                     http::Response const& response);

// Sends a change and settles it. With --dry-run it only plans and prints the plan.
[[nodiscard]] Result<Settled> change(Connection const& connection, Options const& options,
                                     ApiRequest request);

}  // namespace vfmgr
