// SPDX-License-Identifier: Apache-2.0
// The hosts of a fleet. vfctl talks to a replica of vfmgr-fleetd here, as to a vfmgrd elsewhere.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/fleet_host.hpp"
#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto hosts_path = "/v1/hosts";

std::string host_path(std::string const& name) {
    return fmt::format("{}/{}", hosts_path, name);
}

// What keeps new VFs from being attached there, in the order of how much it matters.
std::string condition(FleetHost const& host) {
    if (host.fenced) return "fenced";
    if (host.state != FleetHostState::active) return cell(host.state);
    if (host.leaving) return "leaving";
    if (host.unreachable_since) return "unreachable";
    return host.cordoned ? "cordoned" : "active";
}

std::string labels_text(std::map<std::string, std::string> const& labels) {
    std::vector<std::string> all;
    for (auto const& [key, value] : labels) all.push_back(fmt::format("{}={}", key, value));
    return cell(all);
}

Table host_table(std::vector<FleetHost> const& hosts) {
    Table table{{"NAME", "CONDITION", "RACK", "PFS", "VFS", "FREE-VFS", "ATTACHMENTS", "VMS",
                 "OBSERVED", "URL"},
                {}};
    for (auto const& host : hosts) {
        auto const& observed = host.observed;
        table.rows.push_back(
            {cell(host.name), condition(host), cell(host.rack), cell(observed, &FleetHostView::pfs),
             cell(observed, &FleetHostView::vfs), cell(observed, &FleetHostView::free_vfs),
             cell(observed, &FleetHostView::attachments), cell(observed, &FleetHostView::vms),
             cell(observed, &FleetHostView::observed_at), cell(host.url)});
    }
    return table;
}

std::string statement_text(std::optional<Statement> const& statement) {
    if (!statement) return "no";
    return fmt::format("since {} by {}: {}", cell(statement->at), cell(statement->by),
                       cell(statement->reason));
}

std::string host_page(FleetHost const& host, Options const& options) {
    std::vector<Fact> lines{
        {"host", cell(host.name)},
        {"state", cell(host.state)},
        {"url", cell(host.url)},
        {"public key", cell(host.public_key)},
        {"rack", cell(host.rack)},
        {"labels", labels_text(host.labels)},
        {"joined", fmt::format("at {} by {}", cell(host.joined_at), cell(host.joined_by))},
        {"cordoned", statement_text(host.cordoned)},
        {"fenced", statement_text(host.fenced)}};
    if (host.leaving) lines.emplace_back("leaving", statement_text(host.leaving));
    if (!host.reason.empty()) lines.insert(lines.begin() + 2, {"reason", cell(host.reason)});
    if (host.unreachable_since)
        lines.emplace_back("unreachable", fmt::format("since {}: {}", cell(host.unreachable_since),
                                                      cell(host.unreachable_why)));
    for (auto const& partition : host.partitions)
        lines.emplace_back("partition " + cell(partition.id), cell(partition.gpus));
    return facts(lines) + "\n" +
           as_table(host_table({host}), options.no_headers ? Headers::hidden : Headers::shown);
}

Result<void> print_host(http::Response const& response, Options const& options) {
    return print_answer<FleetHost>(
        response, options, [](FleetHost const& host) { return host_table({host}); }, host_page);
}

Result<void> show_host(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = host_path(name)}));
    return print_host(response, options);
}

Result<void> send_and_print(Options const& options, ApiRequest const& request) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send(request));
    return print_host(response, options);
}

Result<void> patch_host(Options const& options, std::string const& name,
                        FleetHostPatch const& patch) {
    return send_and_print(options, {.method = "PATCH",
                                    .path = host_path(name),
                                    .body = to_json_text(JsonWriter::encode(patch))});
}

struct HostSetArguments {
    std::vector<std::string> labels;
    std::optional<std::string> rack;
    std::vector<std::string> partitions;  // ID=GPU,GPU
};

Result<GpuPartition> partition_of(std::string const& text) {
    auto const equals = text.find('=');
    GpuPartition partition{text.substr(0, equals), {}};
    std::string_view rest = equals == text.npos ? std::string_view() : text;
    rest.remove_prefix(equals == text.npos ? 0 : equals + 1);
    while (!rest.empty()) {
        auto const comma = rest.find(',');
        VFMGR_TRY(auto const gpu, PciAddress::parse(rest.substr(0, comma)));
        partition.gpus.push_back(gpu);
        rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    }
    if (!partition.gpus.empty()) return partition;
    return fail(Problem::invalid_request, fmt::format("'{}' names no GPUs", text),
                "write it as --partition 3=0000:1a:00.0,0000:1b:00.0");
}

Result<void> set_host(Options const& options, std::string const& name,
                      HostSetArguments const& arguments) {
    FleetHostPatch patch;
    if (!arguments.labels.empty()) {
        VFMGR_TRY(patch.labels, labels_of(arguments.labels));
    }
    patch.rack = arguments.rack;
    if (!arguments.partitions.empty()) patch.partitions.emplace();
    for (auto const& text : arguments.partitions) {
        if (text == "none") continue;
        VFMGR_TRY(auto partition, partition_of(text));
        patch.partitions->push_back(std::move(partition));
    }
    return patch_host(options, name, patch);
}

Result<void> cordon_host(Options const& options, std::string const& name,
                         std::string const& reason) {
    return patch_host(options, name, {.cordoned = true, .reason = reason});
}

Result<void> uncordon_host(Options const& options, std::string const& name) {
    return patch_host(options, name, {.cordoned = false});
}

Result<void> fence_host(Options const& options, std::string const& name,
                        std::string const& evidence) {
    return send_and_print(options,
                          {.method = "POST",
                           .path = host_path(name) + "/fenced",
                           .body = to_json_text(JsonWriter::encode(FencedRequest{evidence}))});
}

Result<void> unfence_host(Options const& options, std::string const& name) {
    return send_and_print(options, {.method = "DELETE", .path = host_path(name) + "/fenced"});
}

Result<void> confirm_host(Options const& options, std::string const& name) {
    return send_and_print(options,
                          {.method = "POST", .path = host_path(name) + "/confirm", .body = "{}"});
}

Result<void> expel_host(Options const& options, std::string const& name) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_CHECK(connection.send({.method = "DELETE", .path = host_path(name)}));
    print_sentence(
        fmt::format("{} is no longer of the fleet; on the host: vfctl fleet leave", name), options);
    return {};
}

}  // namespace

void add_fleet_host_commands(CLI::App& app, Session& session) {
    auto* const host = add_group(app, "host", "show and manage the hosts of a fleet");
    Named const by_name{"NAME", "name of the host in the fleet"};
    add_command(*host, session, "list", "list the hosts of the fleet", [](Options const& options) {
        return print_list<FleetHost>(options, {.path = hosts_path}, host_table);
    });
    add_named(*host, session, "show", "show one host", by_name, show_host);
    auto const [set, set_name, arguments] =
        add_named(*host, session, "set", "set where a host is and what it has", by_name, set_host,
                  HostSetArguments{});
    set->add_option("--label", arguments.labels,
                    "KEY=VALUE that requests can choose hosts by; replaces all labels; may be "
                    "repeated; none alone: no labels")
        ->type_name("LABEL");
    set->add_option("--rack", arguments.rack, "the rack that it is in; empty: none")
        ->type_name("RACK");
    set->add_option("--partition", arguments.partitions,
                    "ID=GPU,GPU: GPUs that NVSwitches join; replaces all; may be repeated; none "
                    "alone: no partitions")
        ->type_name("PARTITION");
    auto const [cordon, cordon_name, reason] =
        add_named(*host, session, "cordon", "let nothing new be attached there", by_name,
                  cordon_host, std::string());
    cordon->add_option("--reason", reason, "why, for others")->type_name("TEXT");
    add_named(*host, session, "uncordon", "let VFs be attached there again", by_name,
              uncordon_host);
    auto const [fence, fence_name, evidence] =
        add_named(*host, session, "fence", "state that a host is off: its VMs may run elsewhere",
                  by_name, fence_host, std::string());
    fence->add_option("--evidence", evidence, "who or what switched it off, and how that is known")
        ->type_name("TEXT")
        ->required();
    add_named(*host, session, "unfence", "state that a fenced host serves again", by_name,
              unfence_host);
    add_named(*host, session, "confirm",
              "accept a host as it is that was quarantined, after you have checked it", by_name,
              confirm_host);
    add_named(*host, session, "expel", "take a host out of the fleet", by_name, expel_host);
}

}  // namespace vfmgr
