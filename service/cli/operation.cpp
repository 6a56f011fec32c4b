// SPDX-License-Identifier: Apache-2.0
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

Result<void> list_operations(Options const& options) {
    return print_list<Operation>(options, {.path = "/v1/operations"}, operation_table);
}

Result<void> show_operation(Options const& options, std::string const& id) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/operations/" + id}));
    return print_answer<Operation>(
        response, options, [](Operation const& one) { return operation_table({one}); },
        operation_page);
}

Result<void> wait_for_operation(Options const& options, std::string const& id) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const done, follow(connection, options, id));
    return print(operation_table({done.operation}), done.body, options);
}

}  // namespace

void add_operation_commands(CLI::App& app, Session& session) {
    auto* const op = add_group(app, "op", "show running and finished operations");
    add_command(*op, session, "list", "list the operations of the last 30 days", list_operations);
    Named const id{"OPERATION", "ID of the operation"};
    add_named(*op, session, "show", "show one operation with its steps", id, show_operation);
    add_named(*op, session, "wait", "wait until an operation has ended", id, wait_for_operation);
}

}  // namespace vfmgr
