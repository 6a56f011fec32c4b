// SPDX-License-Identifier: Apache-2.0
// RDMA links in software, with the syntax of iproute2's rdma.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <tuple>

#include "api/types/rdma.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/rdma_link.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto links_path = "/v1/rdma-links";
Named const existing_link{"LINK", "name as in the list"};

struct LinkArguments {
    std::string name;
    std::string type_word;
    std::string type;
    std::string netdev_word;
    std::string netdev;
};

std::string users_text(std::optional<ObservedRdmaLink> const& observed) {
    if (observed && observed->users_unknown) return "unknown";
    std::string users;
    if (observed)
        for (auto const& user : observed->users)
            users += fmt::format("{}{}({})", users.empty() ? "" : ", ", cell(user.comm),
                                 user.pid ? cell(user.pid) : "kernel");
    return users.empty() ? "-" : users;
}

Table link_table(std::vector<RdmaLink> const& links) {
    Table table{{"LINK", "TYPE", "IFNAME", "STATE", "ACTIVE", "OWNER", "USERS", "DETAIL"}, {}};
    for (auto const& link : links) {
        auto const& [desired, observed] = std::tie(link.desired, link.observed);
        table.rows.push_back(
            {cell(link.name),
             desired ? cell(desired->type) : cell(observed, &ObservedRdmaLink::type),
             desired ? cell(desired->ifname) : cell(observed, &ObservedRdmaLink::ifname),
             cell(link.state), cell(observed, &ObservedRdmaLink::active), cell(link.owner),
             users_text(observed), cell(link.detail)});
    }
    return table;
}

// The name becomes part of an API path: an invalid one is refused before it is sent.
Result<std::string> link_path(std::string const& name) {
    if (auto const wrong = wrong_rdma_name(name))
        return fail(Problem::invalid_request, fmt::format("the name of an RDMA link {}", *wrong),
                    "vfctl rdma link list shows those of this host");
    return fmt::format("{}/{}", links_path, name);
}

Result<void> show_link(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const path, link_path(name));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = path}));
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const link, value_of<RdmaLink>(response));
    return print(link_table({link}), response.body, options);
}

Result<void> change_link(Options const& options, ApiRequest request,
                         std::string const& done_sentence) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options, std::move(request), done_sentence);
}

Result<void> add_link(Options const& options, LinkArguments const& arguments) {
    VFMGR_TRY(auto const path, link_path(arguments.name));
    ApiRequest request{.method = "PUT", .path = path};
    request.body = nlohmann::json{{"type", arguments.type}, {"ifname", arguments.netdev}}.dump();
    return change_link(options, std::move(request),
                       fmt::format("{} exists, and is created again at boot", arguments.name));
}

Result<void> remove_link(Options const& options, std::string const& name, bool force) {
    VFMGR_TRY(auto const path, link_path(name));
    ApiRequest request{.method = "DELETE", .path = path};
    if (force) request.query["force"] = "true";
    return change_link(options, std::move(request), fmt::format("{} is deleted", name));
}

// "rdma link add NAME type rxe netdev DEV": both keywords are iproute2's.
void add_link_add(CLI::App& link, Session& session) {
    auto const [command, arguments] = add_command(
        link, session, "add", "create a link, now and at each boot: NAME type rxe netdev DEV",
        add_link, LinkArguments{});
    command->add_option("NAME", arguments.name, "name of the RDMA device, such as rxe0")
        ->required();
    command->add_option("type", arguments.type_word, "the word type")
        ->required()
        ->check(one_of({"type"}));
    command->add_option("TYPE", arguments.type, "rxe or siw")
        ->required()
        ->check(one_of({"rxe", "siw"}));
    command->add_option("netdev", arguments.netdev_word, "the word netdev")
        ->required()
        ->check(one_of({"netdev"}));
    command->add_option("DEV", arguments.netdev, "a trusted network device, such as bond0")
        ->required();
}

void add_link_delete(CLI::App& link, Session& session) {
    auto const [command, name, force] =
        add_named(link, session, "delete", "delete a link that is not in use", existing_link,
                  remove_link, false);
    command->add_flag("--force", force, "delete it even if the kernel or an attachment uses it");
}

}  // namespace

checks::CommandFact links_of_daemon() {
    auto const connection = Connection::open({.host = local_context});
    auto const links =
        connection ? get_list<RdmaLink>(*connection, links_path) : fail(connection.error());
    if (links) return {.out = as_csv(link_table(*links), Headers::hidden), .err{}};
    return {.out{}, .err = links.error().detail, .exit_status = exit_code(links.error().problem)};
}

void add_rdma_link_commands(CLI::App& rdma, Session& session) {
    auto* const link =
        add_group(rdma, "link", "show and manage software RDMA links (SoftRoCE, iWARP)");
    auto const list = [](Options const& options) {
        return print_list<RdmaLink>(options, {.path = links_path}, link_table);
    };
    add_command(*link, session, "list",
                "list the configured and the existing links, and their users", list);
    add_named(*link, session, "show", "show one link and its users", existing_link, show_link);
    add_link_add(*link, session);
    add_link_delete(*link, session);
}

}  // namespace vfmgr
