// SPDX-License-Identifier: Apache-2.0
// Shows where a host's GPUs and NICs are, and which PF's VF goes with which GPU; and where a VM
// finds its own, which it places as on the host.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "api/types/vm_topology.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/host_facts.hpp"
#include "service/cli/host_tree.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/checks/host/host_tree.hpp"

namespace vfmgr {
namespace {

struct TopologyArguments {
    FactsSource source;
    bool svg = false;
    std::string vm{};  // empty: the host's own tree is shown
    bool xml = false, apply = false, back = false;
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

Table vm_pair_table(VmTopology const& topology) {
    Table table{{"GPU", "NIC", "ON THE HOST", "IN THE VM", "PROPOSED"}, {}};
    for (auto const& pair : topology.pairs)
        table.rows.push_back({cell(pair.gpu), cell(pair.nic), cell(pair.on_host),
                              cell(pair.in_guest), cell(pair.proposed)});
    return table;
}

Table vm_device_table(VmTopology const& topology) {
    Table table{{"PCI", "KIND", "NODE", "IN THE VM", "PROPOSED"}, {}};
    for (auto const& device : topology.devices)
        table.rows.push_back({cell(device.pci), cell(device.kind), cell(device.numa_node),
                              cell(device.in_guest), cell(device.proposed)});
    return table;
}

Result<void> topology_of_vm(Options const& options, TopologyArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vm, resolve_vm(connection, arguments.vm));
    auto const path = fmt::format("/v1/vms/{}/topology", vm.uuid);
    if (arguments.apply)
        return change_and_report(
            connection, options, {.method = "POST", .path = path},
            fmt::format("{} finds its devices as on the host from its next start on", vm.name));
    if (arguments.back)
        return change_and_report(
            connection, options, {.method = "DELETE", .path = path},
            fmt::format("{} has its devices where they were from its next start on", vm.name));
    VFMGR_TRY(auto const response, connection.send({.path = path}));
    VFMGR_TRY(auto const topology, value_of<VmTopology>(response));
    if (arguments.xml) {
        write_out(topology.xml, Shown::text);
        return {};
    }
    auto page = section("pairs of VM " + topology.vm, vm_pair_table(topology), options);
    page += section("where they are", vm_device_table(topology), options);
    page += bullets("notes", topology.notes);
    return print(vm_pair_table(topology), page, response.body, options);
}

Result<void> topology(Options const& options, TopologyArguments const& arguments) {
    if (!arguments.vm.empty()) return topology_of_vm(options, arguments);
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
    auto* const vm =
        command->add_option("--vm", arguments.vm, "of this VM's GPUs and VFs, there and in the VM");
    auto const of_vm = [command = command, vm](char const* name, bool& value, char const* help) {
        return command->add_flag(name, value, help)->needs(vm);
    };
    auto* const xml = of_vm("--xml", arguments.xml, "print what its XML is to have");
    auto* const apply = of_vm("--apply", arguments.apply, "put it into its XML; it is shut off");
    auto* const back = of_vm("--back", arguments.back, "undo --apply; it is shut off");
    apply->excludes(xml)->excludes(back);
    back->excludes(xml);
}

}  // namespace vfmgr
