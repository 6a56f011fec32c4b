// SPDX-License-Identifier: Apache-2.0
// Shows which RDMA port is which netdev, PCI function and VF.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/host_facts.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/machine/rdma_names.hpp"

namespace vfmgr {
namespace {

struct RdmaArguments {
    FactsSource source;
    bool gids = false;
};

Result<std::vector<RdmaName>> names_of(Options const& options, FactsSource const& source) {
    if (source.from.empty() && !source.local) {
        auto const answer = ask_host_list(options, "/v1/host/rdma");
        if (answer) {
            VFMGR_TRY(auto list, value_of<ItemList<RdmaName>>(*answer));
            return std::move(list.items);
        }
        if (!may_collect_here(options, answer.error())) return fail(answer.error());
    }
    VFMGR_TRY(auto const facts, facts_of(source));
    return checks::rdma_names(checks::read_machine(facts));
}

Table table_of(std::vector<RdmaName> const& names) {
    Table table{
        {"RDMA DEVICE", "PORT", "IFNAME", "PCI", "PF", "VF", "STATE", "LINK LAYER", "DRIVER"}, {}};
    for (auto const& name : names)
        table.rows.push_back({cell(name.rdma_device), cell(name.port), cell(name.ifname),
                              cell(name.pci), cell(name.vf, &VfId::pf), cell(name.vf, &VfId::index),
                              cell(name.state), cell(name.link_layer), cell(name.driver)});
    return table;
}

Result<void> list_names(Options const& options, RdmaArguments const& arguments) {
    VFMGR_TRY(auto const names, names_of(options, arguments.source));
    auto const kind = arguments.gids ? checks::RdmaTable::gids : checks::RdmaTable::names;
    return print(table_of(names), checks::rdma_table(names, kind),
                 to_json_text(ItemList<RdmaName>{names}), options);
}

}  // namespace

void add_rdma_commands(CLI::App& app, Session& session) {
    auto* const rdma = add_group(app, "rdma", "show RDMA devices, and manage software RDMA links");
    auto const [command, arguments] = add_command(
        *rdma, session, "list", "list RDMA ports with netdev, PCI function, VF and GIDs",
        list_names, RdmaArguments{});
    command->add_flag("--gids", arguments.gids, "print one line for each GID");
    add_source_options(*command, arguments.source);
    add_rdma_link_commands(*rdma, session);
}

}  // namespace vfmgr
