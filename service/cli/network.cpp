// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/edit_until_written.hpp"
#include "service/cli/network_edit.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto networks_path = "/v1/networks";

std::string network_path(std::string const& name) {
    return fmt::format("{}/{}", networks_path, name);
}

struct NetworkSetArguments {
    NetworkEdit edit;
    std::vector<std::string> pfs;  // "enp1s0=10.1.0.1"
    std::vector<std::string> pfs_removed;
    std::string file;
};

Table network_table(std::vector<Network> const& networks) {
    Table table{{"NAME", "VLAN", "PREFIX", "RANGES", "MTU", "RDMA", "DSCP", "P_KEY", "PF", "HOST"},
                {}};
    for (auto const& network : networks) {
        std::vector<std::string> row{cell(network.name),
                                     cell(network.vlan),
                                     cell(network.prefix),
                                     cell(network.ranges),
                                     cell(network.mtu),
                                     cell(network.rdma),
                                     cell(network.dscp),
                                     network.pkey ? to_string(*network.pkey) : "-",
                                     "-",
                                     "-"};
        for (auto const& on : network.pfs) {
            row[8] = cell(on.pf);
            row[9] = cell(on.host_address);
            table.rows.push_back(row);
        }
        if (network.pfs.empty()) table.rows.push_back(row);
    }
    return table;
}

std::string network_page(Network const& network, Options const& options) {
    return as_table(network_table({network}),
                    options.no_headers ? Headers::hidden : Headers::shown);
}

Result<void> show_network(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = network_path(name)}));
    return print_answer<Network>(
        response, options, [](Network const& one) { return network_table({one}); }, network_page);
}

Result<NetworkPf> pf_of(Connection const& connection, std::string const& text) {
    auto const equals = text.find('=');
    if (equals == std::string::npos)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' is not of the form PF=ADDRESS", text),
                    "name the PF and the host's address on it: --pf enp1s0=192.168.100.1");
    VFMGR_TRY(auto const pf, resolve_pf(connection, text.substr(0, equals)));
    VFMGR_TRY(auto const address, IpAddress::parse(text.substr(equals + 1)));
    return NetworkPf{pf, address};
}

Result<std::string> edited(Found const& found, std::string const& name,
                           NetworkEdit const& desired) {
    Network network;
    if (!found.body.empty()) {
        VFMGR_TRY(network, from_json_text<Network>(found.body));
    } else if (desired.prefix.empty()) {
        return fail(Problem::invalid_request,
                    fmt::format("the new network {} needs a prefix", name),
                    fmt::format("vfctl network set {} --prefix 192.168.100.0/24 --pf "
                                "PF=192.168.100.1",
                                name));
    }
    network.name = name;
    VFMGR_TRY(auto const result, edit(std::move(network), desired));
    return nlohmann::json(result).dump();
}

Result<void> set_network(Options const& options, std::string const& name,
                         NetworkSetArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    auto const path = network_path(name);
    Settled settled;
    if (arguments.file.empty()) {
        auto desired = arguments.edit;
        for (auto const& text : arguments.pfs) {
            VFMGR_TRY(auto const on, pf_of(connection, text));
            desired.pfs.push_back(on);
        }
        for (auto const& text : arguments.pfs_removed) {
            VFMGR_TRY(auto const pf, resolve_pf(connection, text));
            desired.pfs_removed.push_back(pf);
        }
        VFMGR_TRY(settled, edit_until_written(
                               connection, options, path,
                               [&](Found const& found) { return edited(found, name, desired); },
                               network_table({})));
    } else {
        VFMGR_TRY(auto whole, read_document(arguments.file));
        VFMGR_TRY(settled, change(connection, options,
                                  {.method = "PUT", .path = path, .body = std::move(whole)},
                                  network_table({})));
    }
    if (settled.shown) return {};
    return show_network(options, name);
}

Result<void> remove_network(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options, {.method = "DELETE", .path = network_path(name)},
                             fmt::format("network {} is removed", name));
}

void add_network_set(CLI::App& network, Session& session) {
    auto const [command, name, arguments] =
        add_named(network, session, "set", "make a network, or change it",
                  {"NETWORK", "1 to 32 of a-z, 0-9 and '-'"}, set_network, NetworkSetArguments{});
    auto* const file =
        command
            ->add_option("-f,--file", arguments.file,
                         "read the whole network as YAML or JSON from FILE; - for standard input")
            ->type_name("FILE");
    auto const add = [&, set = command](char const* option, std::string& into, char const* help) {
        return set->add_option(option, into, help)->excludes(file);
    };
    auto const add_all = [&, set = command](char const* option, std::vector<std::string>& into,
                                            char const* help) {
        return set->add_option(option, into, help)->excludes(file)->expected(1)->take_all();
    };
    auto& edit = arguments.edit;
    add("--prefix", edit.prefix, "subnet, such as 192.168.100.0/24");
    add("--vlan", edit.vlan, "VLAN ID; none: untagged");
    add("--pkey", edit.pkey,
        "P_Key of the InfiniBand partition that VMs are members of, such as 0x0001; =limited for "
        "limited members; none: any");
    add("--mtu", edit.mtu, "bytes, 1280 to 9216");
    add("--rdma", edit.rdma, "how the host takes part")->check(one_of<RdmaMode>());
    add("--dscp", edit.dscp, "DSCP of RoCE packets, 0 to 63; none: best effort");
    add_all("--range", edit.ranges,
            "addresses to choose from for VMs, FIRST-LAST; replaces all ranges; none: all of the "
            "prefix");
    add_all("--pf", arguments.pfs,
            "PF=ADDRESS: a PF that carries it, and the host's address there");
    add_all("--pf-remove", arguments.pfs_removed, "a PF that carries it no longer");
}

}  // namespace

void add_network_commands(CLI::App& app, Session& session) {
    auto* const network = add_group(app, "network", "show and configure networks of the host");
    add_command(*network, session, "list", "list the networks of the host",
                [](Options const& options) {
                    return print_list<Network>(options, {.path = networks_path}, network_table);
                });
    Named const by_name{"NETWORK", "name of the network"};
    add_named(*network, session, "show", "show one network", by_name, show_network);
    add_network_set(*network, session);
    add_named(*network, session, "remove", "remove a network that no attachment uses", by_name,
              remove_network);
}

}  // namespace vfmgr
