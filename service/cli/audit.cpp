// SPDX-License-Identifier: Apache-2.0
#include "service/cli/add_command.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {

void add_audit_command(CLI::App& app, Session& session) {
    auto const list = [](Options const& options, std::optional<std::uint32_t> const& newest) {
        return print_list<AuditEntry>(options, {.path = "/v1/audit"}, audit_table,
                                      newest.value_or(SIZE_MAX));
    };
    auto const [command, newest] =
        add_command(app, session, "audit", "show who requested what, the latest first", list,
                    std::optional<std::uint32_t>());
    command->add_option("--limit", newest, "show only the latest entries: their number")
        ->check(CLI::PositiveNumber);
}

}  // namespace vfmgr
