// SPDX-License-Identifier: Apache-2.0
// Pools of VFs, and the identities that this host may hand out.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/identities.hpp"
#include "api/types/json.hpp"
#include "api/types/pool.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/attach_spec.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/edit_until_written.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto pools_path = "/v1/pools";
constexpr auto identities_path = "/v1/identities";

std::string pool_path(std::string const& name) {
    return fmt::format("{}/{}", pools_path, name);
}

// Each list replaces that of the pool, if it is given.
struct PoolSetArguments {
    std::string file;
    std::vector<std::string> pfs, drivers, devices, link_layers, pcie_roots, labels;
    std::vector<std::int32_t> numa_nodes;
    std::string rdma, network, trust, spoofchk, verify, verify_profile, from_metadata;
    std::optional<std::uint32_t> max_tx_rate, min_tx_rate;
};

std::string selectors_text(PoolSelectors const& select) {
    std::vector<std::string> all;
    auto const add = [&](char const* name, auto const& values) {
        for (auto const& value : values) all.push_back(fmt::format("{}={}", name, cell(value)));
    };
    add("pf", select.pfs);
    add("driver", select.drivers);
    add("device", select.devices);
    add("numa", select.numa_nodes);
    add("link", select.link_layers);
    add("root", select.pcie_roots);
    for (auto const& [key, value] : select.labels) all.push_back(fmt::format("{}={}", key, value));
    if (select.rdma) all.push_back(fmt::format("rdma={}", cell(select.rdma)));
    return all.empty() ? "all" : cell(all);
}

Table pool_table(std::vector<Pool> const& pools) {
    Table table{{"NAME", "SELECTS", "NETWORK", "TRUST", "MAX-TX-RATE", "VERIFY", "PROFILE",
                 "FROM-METADATA"},
                {}};
    for (auto const& pool : pools) {
        auto const& defaults = pool.defaults;
        table.rows.push_back({cell(pool.name), selectors_text(pool.select), cell(defaults.network),
                              cell(defaults.settings.trust),
                              cell(defaults.settings.max_tx_rate_mbps), cell(defaults.verify),
                              cell(defaults.verify_profile), cell(pool.from_metadata)});
    }
    return table;
}

std::string pool_page(Pool const& pool, Options const& options) {
    return as_table(pool_table({pool}), options.no_headers ? Headers::hidden : Headers::shown);
}

Result<void> show_pool(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = pool_path(name)}));
    return print_answer<Pool>(
        response, options, [](Pool const& one) { return pool_table({one}); }, pool_page);
}

template <class T, class Parse>
Result<void> replace(std::vector<T>& values, std::vector<std::string> const& texts, Parse parse) {
    if (texts.empty()) return {};
    values.clear();
    for (auto const& text : texts) {
        VFMGR_TRY(T value, parse(text));
        values.push_back(std::move(value));
    }
    return {};
}

// A PF by any name: "enp1s0/0-3".
Result<PfVfs> pf_vfs(Connection const& connection, std::string const& text) {
    auto const slash = text.find('/');
    VFMGR_TRY(auto const pf, resolve_pf(connection, text.substr(0, slash)));
    return PfVfs::parse(to_string(pf) + (slash == std::string::npos ? "" : text.substr(slash)));
}

Result<void> set_pool_selectors(Connection const& connection, PoolSelectors& select,
                                PoolSetArguments const& arguments) {
    auto const as_it_is = [](std::string const& text) -> Result<std::string> { return text; };
    VFMGR_CHECK(replace(select.pfs, arguments.pfs,
                        [&](std::string const& text) { return pf_vfs(connection, text); }));
    VFMGR_CHECK(replace(select.drivers, arguments.drivers, as_it_is));
    VFMGR_CHECK(replace(select.devices, arguments.devices, PciIds::parse));
    VFMGR_CHECK(replace(select.link_layers, arguments.link_layers, [](std::string const& text) {
        return parse_choice<LinkLayer>("--link-layer", text, "see vfctl pool set --help");
    }));
    VFMGR_CHECK(replace(select.pcie_roots, arguments.pcie_roots, as_it_is));
    if (!arguments.numa_nodes.empty()) select.numa_nodes = arguments.numa_nodes;
    if (!arguments.labels.empty()) {
        VFMGR_TRY(select.labels, labels_of(arguments.labels));
    }
    if (!arguments.rdma.empty()) {
        VFMGR_TRY(select.rdma, parse_on_off("--has-rdma", arguments.rdma));
    }
    return {};
}

Result<void> set_pool_defaults(PoolDefaults& defaults, PoolSetArguments const& arguments) {
    constexpr auto help = "see vfctl pool set --help";
    if (!arguments.network.empty()) defaults.network = arguments.network;
    if (!arguments.trust.empty()) {
        VFMGR_TRY(defaults.settings.trust, parse_on_off("--trust", arguments.trust));
    }
    if (!arguments.spoofchk.empty()) {
        VFMGR_TRY(defaults.settings.spoofchk, parse_on_off("--spoofchk", arguments.spoofchk));
    }
    if (arguments.max_tx_rate) defaults.settings.max_tx_rate_mbps = arguments.max_tx_rate;
    if (arguments.min_tx_rate) defaults.settings.min_tx_rate_mbps = arguments.min_tx_rate;
    if (!arguments.verify.empty()) {
        VFMGR_TRY(defaults.verify, parse_choice<VerifyMode>("--verify", arguments.verify, help));
    }
    if (!arguments.verify_profile.empty()) {
        VFMGR_TRY(defaults.verify_profile,
                  parse_choice<Profile>("--verify-profile", arguments.verify_profile, help));
    }
    return {};
}

Result<void> set_pool(Options const& options, std::string const& name,
                      PoolSetArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    auto const path = pool_path(name);
    Settled settled;
    if (arguments.file.empty()) {
        auto const edited = [&](Found const& found) -> Result<std::string> {
            Pool pool;
            if (!found.body.empty()) {
                VFMGR_TRY(pool, from_json_text<Pool>(found.body));
            }
            VFMGR_CHECK(set_pool_selectors(connection, pool.select, arguments));
            VFMGR_CHECK(set_pool_defaults(pool.defaults, arguments));
            if (!arguments.from_metadata.empty()) {
                VFMGR_TRY(pool.from_metadata,
                          parse_on_off("--from-metadata", arguments.from_metadata));
            }
            return nlohmann::json(pool).dump();
        };
        VFMGR_TRY(settled, edit_until_written(connection, options, path, edited, pool_table({})));
    } else {
        VFMGR_TRY(auto whole, read_document(arguments.file));
        VFMGR_TRY(settled, change(connection, options,
                                  {.method = "PUT", .path = path, .body = std::move(whole)},
                                  pool_table({})));
    }
    if (settled.shown) return {};
    return show_pool(options, name);
}

Result<void> remove_pool(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options, {.method = "DELETE", .path = pool_path(name)},
                             fmt::format("pool {} is removed", name));
}

void add_pool_set(CLI::App& pool, Session& session) {
    auto const [command, name, arguments] =
        add_named(pool, session, "set", "make a pool, or change it",
                  {"POOL", "1 to 32 of a-z, 0-9 and '-'"}, set_pool, PoolSetArguments{});
    auto* const file =
        command
            ->add_option("-f,--file", arguments.file,
                         "read the whole pool as YAML or JSON from FILE; - for standard input")
            ->type_name("FILE");
    auto const add = [file, set = command](char const* option, auto& into, char const* help) {
        return set->add_option(option, into, help)->excludes(file);
    };
    auto const add_all = [file, set = command](char const* option, auto& into, char const* help) {
        return set->add_option(option, into, help)->excludes(file)->expected(1)->take_all();
    };
    add_all("--pf", arguments.pfs, "a PF, or some of its VFs: enp1s0, 0000:01:00.0/0-3");
    add_all("--driver", arguments.drivers, "the PF's driver");
    add_all("--device", arguments.devices, "the PF's VENDOR:DEVICE, such as 15b3:101d");
    add_all("--numa-node", arguments.numa_nodes, "the PF's NUMA node");
    add_all("--link-layer", arguments.link_layers, "of the PF")->check(one_of<LinkLayer>());
    add_all("--pcie-root", arguments.pcie_roots, "what the PF is below, such as pci0000:3a");
    add_all("--label", arguments.labels, "KEY=VALUE, a label of the PF (vfctl pf set --label)");
    add("--has-rdma", arguments.rdma, "on: PFs with an RDMA device; off: those without")
        ->check(on_or_off());
    add("--network", arguments.network, "default: the VF's network")->type_name("NETWORK");
    add("--trust", arguments.trust, "default")->check(on_or_off());
    add("--spoofchk", arguments.spoofchk, "default")->check(on_or_off());
    add("--min-tx-rate", arguments.min_tx_rate, "default: Mbit/s");
    add("--max-tx-rate", arguments.max_tx_rate, "default: Mbit/s; 0: no limit");
    add("--verify", arguments.verify, "default")->check(one_of<VerifyMode>());
    add("--verify-profile", arguments.verify_profile, "default")->check(one_of<Profile>());
    add("--from-metadata", arguments.from_metadata,
        "whether VMs that declare the pool in their metadata get its VFs")
        ->check(on_or_off());
}

void add_listed(Table& table, IdentityList const& list, char const* as) {
    for (auto const& mac : list.macs) table.rows.push_back({"mac", "-", cell(mac), as});
    for (auto const& guid : list.guids) table.rows.push_back({"guid", "-", cell(guid), as});
    for (auto const& [network, address] : list.addresses)
        table.rows.push_back({"address", cell(network), cell(address), as});
}

// Every row is a range if the host is in no fleet.
Table identity_table(IdentitiesView const& view) {
    auto const& identities = view.identities;
    Table table{{"KIND", "NETWORK", "RANGE", "AS"}, {}};
    auto const add = [&](char const* kind, std::string const& network, auto const& range) {
        table.rows.push_back({kind, network, cell(range), "range"});
    };
    for (auto const& range : identities.macs) add("mac", "-", range);
    for (auto const& range : identities.guids) add("guid", "-", range);
    for (auto const& [network, ranges] : identities.addresses)
        for (auto const& range : ranges) add("address", cell(network), range);
    add_listed(table, identities.claims, "claim");
    add_listed(table, identities.given_up, "given up");
    return table;
}

std::string identity_page(IdentitiesView const& view, Options const& how) {
    auto page = as_table(identity_table(view), how.no_headers ? Headers::hidden : Headers::shown);
    if (!view.identities.generation) return page;
    std::vector<Fact> lines{{"generation", cell(*view.identities.generation)}};
    if (view.free) {
        lines.emplace_back("free MACs", cell(view.free->macs));
        lines.emplace_back("free GUIDs", cell(view.free->guids));
        for (auto const& [network, count] : view.free->addresses)
            lines.emplace_back("free in " + cell(network), cell(count));
    }
    return page + "\n" + facts(lines);
}

Result<void> show_identities(Options const& options) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = identities_path}));
    return print_answer<IdentitiesView>(response, options, identity_table, identity_page);
}

struct IdentityArguments {
    std::vector<std::string> macs, guids, addresses;
};

// "train=10.1.0.10-10.1.0.99"
Result<std::pair<std::string, Range<IpAddress>>> network_range(std::string const& text) {
    auto const equals = text.find('=');
    if (equals == std::string::npos)
        return fail(Problem::invalid_request,
                    fmt::format("'{}' is not of the form NETWORK=FIRST-LAST", text),
                    "name the network: --address train=10.1.0.10-10.1.0.99");
    VFMGR_TRY(auto const range, Range<IpAddress>::parse(text.substr(equals + 1)));
    return std::pair(text.substr(0, equals), range);
}

Result<void> set_identities(Options const& options, IdentityArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    auto const edited = [&](Found const& found) -> Result<std::string> {
        VFMGR_TRY(auto view, from_json_text<IdentitiesView>(found.body));
        auto& identities = view.identities;
        VFMGR_CHECK(replace(identities.macs, arguments.macs, Range<MacAddress>::parse));
        VFMGR_CHECK(replace(identities.guids, arguments.guids, Range<Guid>::parse));
        if (!arguments.addresses.empty()) identities.addresses.clear();
        for (auto const& text : arguments.addresses) {
            VFMGR_TRY(auto const of, network_range(text));
            auto at = std::ranges::find(identities.addresses, of.first, &NetworkRanges::network);
            if (at == identities.addresses.end())
                at = identities.addresses.insert(at, NetworkRanges{of.first, {}});
            at->ranges.push_back(of.second);
        }
        return nlohmann::json(identities).dump();
    };
    VFMGR_TRY(auto const settled,
              edit_until_written(connection, options, identities_path, edited, identity_table({})));
    if (settled.shown) return {};
    return show_identities(options);
}

}  // namespace

void add_pool_commands(CLI::App& app, Session& session) {
    auto* const pool = add_group(app, "pool", "show and configure pools of VFs");
    add_command(*pool, session, "list", "list the pools of the host", [](Options const& options) {
        return print_list<Pool>(options, {.path = pools_path}, pool_table);
    });
    Named const by_name{"POOL", "name of the pool"};
    add_named(*pool, session, "show", "show one pool", by_name, show_pool);
    add_pool_set(*pool, session);
    add_named(*pool, session, "remove", "remove a pool that no reservation uses", by_name,
              remove_pool);
}

void add_identity_commands(CLI::App& app, Session& session) {
    auto* const identities =
        add_group(app, "identities", "show and set the addresses that this host may hand out");
    add_command(*identities, session, "show", "show the ranges", show_identities);
    auto const [command, arguments] = add_command(
        *identities, session, "set", "set ranges; those of one kind replace all of that kind",
        set_identities, IdentityArguments{});
    command->add_option("--mac", arguments.macs, "FIRST-LAST")->expected(1)->take_all();
    command->add_option("--guid", arguments.guids, "FIRST-LAST")->expected(1)->take_all();
    command->add_option("--address", arguments.addresses, "NETWORK=FIRST-LAST")
        ->expected(1)
        ->take_all();
}

}  // namespace vfmgr
