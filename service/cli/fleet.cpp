// SPDX-License-Identifier: Apache-2.0
// A host's membership of a fleet.
#include "api/types/fleet.hpp"

#include <fmt/format.h>

#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/fleet.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto fleet_path = "/v1/fleet";

Table fleet_table(FleetView const& view) {
    auto const& in = view.membership;
    return {{"FLEET", "HOST", "URLS", "JOINED", "CONTACTED", "FENCE", "STORE", "LAST-EVENT",
             "RESTORED"},
            {{cell(in, &FleetMembership::fleet), cell(in, &FleetMembership::host),
              cell(in, &FleetMembership::urls), cell(in, &FleetMembership::joined_at),
              in ? cell(in->contacted_at) : "-", cell(in, &FleetMembership::fence),
              cell(view.store), cell(view.last_event), cell(view.restored_at)}}};
}

std::string fleet_page(FleetView const& view, Options const&) {
    std::vector<Fact> lines;
    if (auto const& in = view.membership)
        lines = {{"fleet", cell(in->fleet)},
                 {"host", cell(in->host)},
                 {"URLs", cell(in->urls)},
                 {"joined", cell(in->joined_at)},
                 {"contacted", cell(in->contacted_at)},
                 {"fence", cell(in->fence)}};
    else
        lines = {{"fleet", "none"}};
    lines.emplace_back("store", cell(view.store));
    lines.emplace_back("last event", cell(view.last_event));
    if (view.restored_at) lines.emplace_back("restored", cell(view.restored_at));
    if (view.note) lines.emplace_back("note", cell(view.note));
    return facts(lines);
}

Result<void> show_fleet(Options const& options) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = fleet_path}));
    return print_answer<FleetView>(response, options, fleet_table, fleet_page);
}

Result<void> leave_fleet(Options const& options) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options, {.method = "DELETE", .path = fleet_path},
                             "this host is in no fleet now");
}

Result<void> confirm_restored(Options const& options) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options,
                             {.method = "POST", .path = std::string(fleet_path) + "/confirm"},
                             "the restored store is confirmed");
}

}  // namespace

void add_fleet_commands(CLI::App& app, Session& session) {
    auto* const fleet = add_group(app, "fleet", "begin a fleet, join it, leave it");
    add_command(*fleet, session, "show", "show the membership, and the store's identity",
                show_fleet);
    add_command(*fleet, session, "leave", "leave the fleet; what is attached stays", leave_fleet);
    add_command(*fleet, session, "confirm",
                "allow attachments again on a member whose store was restored", confirm_restored);
    add_fleet_joining(*fleet, session);
    add_fleet_identities(*fleet, session);
    add_fleet_init(*fleet, session);
}

}  // namespace vfmgr
