// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

Result<void> list(Options const& options) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/operations"}));
    VFMGR_TRY(auto const body, json_of(response));
    print(operation_table(body.at("items")), response.body, options);
    return {};
}

Result<void> show(Options const& options, std::string const& id) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/operations/" + id}));
    VFMGR_TRY(auto const operation, json_of(response));
    print(operation_table(nlohmann::json::array({operation})), operation_page(operation, options),
          response.body, options);
    return {};
}

Result<void> wait(Options const& options, std::string const& id) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const operation, follow(connection, options, id));
    print(operation_table(nlohmann::json::array({operation})), operation.dump(), options);
    return {};
}

void add_with_id(CLI::App& parent, Session& session, std::string const& verb,
                 std::string const& help, Result<void> (*run)(Options const&, std::string const&)) {
    auto* const command = parent.add_subcommand(verb, help)->fallthrough();
    auto const id = std::make_shared<std::string>();
    command->add_option("ID", *id, "ID of the operation")->required();
    command->callback([&session, id, run] {
        session.run = [&session, id, run] { return run(session.options, *id); };
    });
}

}  // namespace

void add_operation_commands(CLI::App& app, Session& session) {
    auto* const op =
        app.add_subcommand("op", "show running and finished operations")->fallthrough();
    op->require_subcommand(1);
    op->add_subcommand("list", "list the operations of the last 30 days")
        ->fallthrough()
        ->callback([&session] { session.run = [&session] { return list(session.options); }; });
    add_with_id(*op, session, "show", "show one operation with its steps", show);
    add_with_id(*op, session, "wait", "wait until an operation has ended", wait);
}

}  // namespace vfmgr
