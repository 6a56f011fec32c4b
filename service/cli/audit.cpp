// SPDX-License-Identifier: Apache-2.0
#include "service/cli/add_command.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {

void add_audit_command(CLI::App& app, Session& session) {
    auto const list = [](Options const& options, std::uint32_t entries) {
        return print_list<AuditEntry>(
            options, {.path = "/v1/audit", .query = {{"limit", std::to_string(entries)}}},
            audit_table);
    };
    auto const [command, limit] =
        add_command(app, session, "audit", "show who requested what, the latest first", list,
                    std::uint32_t{100});
    command->add_option("--limit", limit, "number of entries, at most 1000 (default: 100)");
}

}  // namespace vfmgr
