// SPDX-License-Identifier: Apache-2.0
// Who has which identity in the whole fleet, as a replica knows it.
#include "api/types/fleet_identities.hpp"

#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/fleet.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

struct IdentityFilters {
    std::string on, kind, identity, vm, state;
};

Table fleet_identity_table(std::vector<FleetIdentity> const& all) {
    Table table{{"KIND", "IDENTITY", "NETWORK", "HOST", "VM", "SINCE", "SOURCE", "STATE", "KEY"},
                {}};
    for (auto const& one : all)
        table.rows.push_back({cell(one.kind), cell(one.identity), cell(one.network), cell(one.host),
                              one.vm ? cell(one.vm) : cell(one.vm_uuid), cell(one.since),
                              cell(one.source), cell(one.state), cell(one.public_key)});
    return table;
}

Result<void> list_fleet_identities(Options const& options, IdentityFilters const& only) {
    ApiRequest request{.path = "/v1/fleet/identities"};
    for (auto const& [name, value] : {std::pair{"host", &only.on}, std::pair{"kind", &only.kind},
                                      std::pair{"identity", &only.identity},
                                      std::pair{"vm", &only.vm}, std::pair{"state", &only.state}})
        if (!value->empty()) request.query[name] = *value;
    return print_list<FleetIdentity>(options, request, fleet_identity_table);
}

}  // namespace

void add_fleet_identities(CLI::App& fleet, Session& session) {
    auto const [command, only] = add_command(
        fleet, session, "identities", "list who has which MAC, GUID or address (on a replica)",
        list_fleet_identities, IdentityFilters{});
    command->add_option("--on", only.on, "only of this host")->type_name("HOST");
    command->add_option("--kind", only.kind, "only of this kind")->check(one_of<IdentityKind>());
    command->add_option("--identity", only.identity, "only this MAC, GUID or address")
        ->type_name("ADDRESS");
    command->add_option("--vm", only.vm, "only of this VM, by name or UUID")->type_name("VM");
    command->add_option("--state", only.state, "only those in this state")
        ->check(one_of<IdentityState>());
}

}  // namespace vfmgr
