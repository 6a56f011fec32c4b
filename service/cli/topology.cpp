// SPDX-License-Identifier: Apache-2.0
// Shows where a host's GPUs and NICs are, and which PF's VF goes with which GPU.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/host_facts.hpp"
#include "service/cli/host_tree.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/checks/host/host_tree.hpp"

namespace vfmgr {
namespace {

struct TopologyArguments {
    FactsSource source;
    bool svg = false;
};

Result<HostTree> tree_of(Options const& options, FactsSource const& source) {
    if (source.from.empty() && !source.local) {
        auto const answer = ask_host(options, "/v1/host/topology");
        if (answer) return value_of<HostTree>(*answer);
        if (!may_collect_here(options, answer.error())) return fail(answer.error());
    }
    VFMGR_TRY(auto const facts, facts_of(source));
    return checks::host_tree(checks::read_machine(facts));
}

Table pair_table(HostTree const& tree) {
    Table table{{"GPU", "PF", "IFNAME", "DISTANCE"}, {}};
    for (auto const& pair : tree.pairs) {
        std::string name;
        for (auto const& device : tree.devices)
            if (device.place.address == pair.pf) name = device.name;
        table.rows.push_back({cell(pair.gpu), cell(pair.pf), cell(name),
                              pair.pf ? std::string(enum_name(pair.distance)) : "-"});
    }
    return table;
}

Result<void> topology(Options const& options, TopologyArguments const& arguments) {
    VFMGR_TRY(auto const tree, tree_of(options, arguments.source));
    if (arguments.svg) {
        write_out(tree_svg(tree), Shown::text);
        return {};
    }
    auto page = tree.devices.empty() ? std::string("no GPU and no NIC with VFs was found\n")
                                     : tree_text(tree);
    page +=
        section("a VF for each GPU, the best for all of them together", pair_table(tree), options);
    page += bullets("blocks direct access between GPUs and NICs, or makes it unsafe", tree.notes);
    return print(pair_table(tree), page, to_json_text(nlohmann::json(tree)), options);
}

}  // namespace

void add_topology_command(CLI::App& app, Session& session) {
    auto const [command, arguments] =
        add_command(app, session, "topology",
                    "show where GPUs and NICs are, and which PF is nearest to which GPU", topology,
                    TopologyArguments{});
    command->add_flag("--svg", arguments.svg, "print a drawing (SVG)");
    add_source_options(*command, arguments.source);
}

}  // namespace vfmgr
