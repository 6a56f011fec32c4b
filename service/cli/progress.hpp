// SPDX-License-Identifier: Apache-2.0
// Follows an operation: a terminal shows its steps while it runs. One thread.
#pragma once

#include <optional>
#include <string>

#include "api/types/operation.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// Returns "[3/7] bind VF 2 of 0000:01:00.0 to vfio-pci", cut to `columns`.
[[nodiscard]] std::string status_line(Operation const& operation, std::size_t columns);

// An operation that has succeeded.
struct Done {
    Operation operation;
    std::string body;     // as the API returned it
    std::string below{};  // of a host that a fleet passed the request on to: "/v1/hosts/h1"

    // Where something of its is, such as its subject "/v1/attachments/3f9c2b1d".
    [[nodiscard]] std::string at(std::string const& path) const {
        return below.empty() ? path : below + path.substr(path.find('/', 1));
    }
};
// Waits for the end, and prints what its steps remarked. Returns the operation, or why it failed.
// Ctrl-C ends vfctl only. `known`: the operation as the API has just answered with it. `below`: as
// of Done.
[[nodiscard]] Result<Done> follow(Connection const& connection, Options const& options,
                                  std::string const& operation_id,
                                  std::optional<Operation> const& known = {},
                                  std::string const& below = {});

// What became of a write.
struct Settled {
    bool shown = false;          // there is nothing left to show: a dry run, or --no-wait
    std::optional<Done> done{};  // absent without `shown`: there was nothing to do
};
// Handles a write's answer: follows the operation of a 202, or prints its id, with --no-wait.
[[nodiscard]] Result<Settled> settle(Connection const& connection, Options const& options,
                                     http::Response const& response);

// Refuses columns that the output will lack, before anything is changed. `shown_after` is the table
// that shows the result.
[[nodiscard]] Result<void> check_columns(Options const& options, Table const& shown_after);

// Sends a change and settles it, after check_columns(). With --dry-run it only plans and prints the
// plan.
[[nodiscard]] Result<Settled> change(Connection const& connection, Options const& options,
                                     ApiRequest request, Table const& shown_after);
// The same for a change that leaves nothing to show but its operation: prints `sentence` for
// people, and the operation if a format or columns are chosen.
[[nodiscard]] Result<void> change_and_report(Connection const& connection, Options const& options,
                                             ApiRequest request, std::string const& sentence);
// Prints an operation that has ended, if a format or columns are chosen.
[[nodiscard]] Result<void> print_done(Done const& done, Options const& options);

}  // namespace vfmgr
