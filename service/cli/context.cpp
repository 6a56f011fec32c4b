// SPDX-License-Identifier: Apache-2.0
// Lists the hosts that have a name, shows which one commands go to, and chooses it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "service/cli/add_command.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

json text_or_null(std::string const& text) {
    return text.empty() ? json() : json(text);
}

json document_of(Server const& server) {
    auto const& with = server.credentials;
    return {{"context", text_or_null(server.context)},
            {"address", server.address},
            {"ca_file", text_or_null(with.ca_file)},
            {"fingerprint", text_or_null(with.fingerprint)},
            {"token_file", text_or_null(with.token_file)},
            {"client_certificate_file", text_or_null(with.client_certificate)},
            {"client_key_file", text_or_null(with.client_key)}};
}

Table table_of(std::vector<Server> const& servers) {
    Table table{
        {"CONTEXT", "ADDRESS", "CA FILE", "FINGERPRINT", "TOKEN FILE", "CLIENT CERTIFICATE"}, {}};
    for (auto const& server : servers) {
        auto const& with = server.credentials;
        table.rows.push_back({cell(server.context), cell(server.address), cell(with.ca_file),
                              cell(with.fingerprint), cell(with.token_file),
                              cell(with.client_certificate)});
    }
    return table;
}

Server server_named(std::string const& name, Context const& context) {
    return {context.address, name, context.credentials};
}

Result<void> list_contexts(Options const& options) {
    VFMGR_TRY(auto const contexts, read_contexts(context_files()));
    auto const current = contexts.current.empty() ? local_context : contexts.current;
    std::vector<Server> servers;
    auto items = json::array();
    for (auto const& [name, context] : contexts.by_name) {
        servers.push_back(server_named(name, context));
        items.push_back(document_of(servers.back()));
        items.back()["current"] = name == current;
        items.back()["file"] = text_or_null(context.file);
    }
    auto table = table_of(servers);
    table.columns.insert(table.columns.end(), {"CURRENT", "FILE"});
    for (std::size_t row = 0; row < servers.size(); ++row) {
        auto const& name = servers[row].context;
        table.rows[row].push_back(cell(name == current));
        table.rows[row].push_back(cell(contexts.by_name.at(name).file));
    }
    return print(table, json{{"items", std::move(items)}}.dump(), options);
}

// Without a name: what commands use now, options and environment included.
Result<void> show_context(Options const& options, std::string const& name) {
    Server server;
    if (name.empty()) {
        VFMGR_TRY(server, server_of(options));
    } else {
        VFMGR_TRY(auto const contexts, read_contexts(context_files()));
        VFMGR_TRY(auto const context, find_context(contexts, name));
        server = server_named(name, context);
    }
    auto const& with = server.credentials;
    auto const page = facts({{"context", cell(server.context)},
                             {"address", cell(server.address)},
                             {"CA file", cell(with.ca_file)},
                             {"fingerprint", cell(with.fingerprint)},
                             {"token file", cell(with.token_file)},
                             {"client certificate", cell(with.client_certificate)},
                             {"client key", cell(with.client_key)}});
    return print(table_of({server}), page, document_of(server).dump(), options);
}

Result<void> use(Options const& options, std::string const& name) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(use_context(context_files(), name));
    print_sentence(
        fmt::format("commands go to {} unless --host or VFMGR_HOST says otherwise", name), options);
    return {};
}

}  // namespace

void add_context_commands(CLI::App& app, Session& session) {
    auto* const context = add_group(app, "context", "choose the host that commands go to");
    add_command(*context, session, "list", "list the hosts that have a name", list_contexts);
    auto const [show, name] =
        add_command(*context, session, "show", "show one, or what commands use now", show_context,
                    std::string());
    show->add_option("CONTEXT", name, "name as in the list");
    add_named(*context, session, "use", "make commands go to this host",
              {"CONTEXT", "name as in the list"}, use);
}

}  // namespace vfmgr
