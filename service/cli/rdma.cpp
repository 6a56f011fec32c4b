// SPDX-License-Identifier: Apache-2.0
// Shows which RDMA port is which netdev, PCI function and VF.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/host_facts.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/machine/rdma_names.hpp"

namespace vfmgr {
namespace {

struct RdmaArguments {
    FactsSource source;
    bool gids = false;
};

struct NameList {
    std::vector<RdmaName> items;
    nlohmann::json next;
};
template <class F, Of<NameList> V>
void fields(F& f, V& list) {
    f.value("items", list.items);
    f.value("next", list.next);
}

Result<std::vector<RdmaName>> names_of(Options const& options, FactsSource const& source) {
    if (source.from.empty() && !source.local) {
        auto const answer = ask_host(options, "/v1/host/rdma");
        if (answer) {
            VFMGR_TRY(auto list, from_json_document<NameList>(*answer));
            return std::move(list.items);
        }
        if (!may_collect_here(options, answer.error())) return fail(answer.error());
    }
    VFMGR_TRY(auto const facts, facts_of(source));
    return checks::rdma_names(checks::read_machine(facts));
}

Table table_of(nlohmann::json const& items) {
    Table table{
        {"rdma_device", "port", "ifname", "pci", "pf", "vf", "state", "link_layer", "driver"}, {}};
    for (auto const& item : items) {
        std::vector<std::string> row;
        for (auto const* const pointer : {"/rdma_device", "/port", "/ifname", "/pci", "/vf/pf",
                                          "/vf/index", "/state", "/link_layer", "/driver"})
            row.push_back(cell(item, pointer));
        table.rows.push_back(std::move(row));
    }
    return table;
}

Result<void> list(Options const& options, RdmaArguments const& arguments) {
    VFMGR_TRY(auto const names, names_of(options, arguments.source));
    nlohmann::json const items = names;
    auto const kind = arguments.gids ? checks::RdmaTable::gids : checks::RdmaTable::names;
    print(table_of(items), checks::rdma_table(names, kind),
          to_json_text({{"items", items}, {"next", nullptr}}), options);
    return {};
}

}  // namespace

void add_rdma_commands(CLI::App& app, Session& session) {
    auto* const rdma =
        app.add_subcommand("rdma", "show RDMA devices, and manage software RDMA links")
            ->fallthrough();
    rdma->require_subcommand(1);
    auto* const command =
        rdma->add_subcommand("list", "list RDMA ports with netdev, PCI function, VF and GIDs")
            ->fallthrough();
    auto const arguments = std::make_shared<RdmaArguments>();
    command->add_flag("--gids", arguments->gids, "print one line for each GID");
    add_source_options(*command, arguments->source);
    command->callback([&session, arguments] {
        session.run = [&session, arguments] { return list(session.options, *arguments); };
    });
    add_rdma_link_commands(*rdma, session);
}

}  // namespace vfmgr
