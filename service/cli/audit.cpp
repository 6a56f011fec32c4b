// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "service/cli/connection.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {

void add_audit_command(CLI::App& app, Session& session) {
    auto* const command =
        app.add_subcommand("audit", "show who requested what, the latest first")->fallthrough();
    auto const limit = std::make_shared<std::uint32_t>(100);
    command->add_option("--limit", *limit, "number of entries, at most 1000 (default: 100)");
    command->callback([&session, limit] {
        session.run = [&session, limit]() -> Result<void> {
            VFMGR_TRY(auto const connection, Connection::open(session.options));
            VFMGR_TRY(auto const response,
                      connection.send(
                          {.path = "/v1/audit", .query = {{"limit", std::to_string(*limit)}}}));
            VFMGR_TRY(auto const body, json_of(response));
            print(audit_table(body.at("items")), response.body, session.options);
            return {};
        };
    });
}

}  // namespace vfmgr
