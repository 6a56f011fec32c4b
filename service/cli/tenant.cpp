// SPDX-License-Identifier: Apache-2.0
#include "api/types/tenant.hpp"

#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto tenants_path = "/v1/tenants";

std::string tenant_path(std::string const& name) {
    return fmt::format("{}/{}", tenants_path, name);
}

Table tenant_table(std::vector<Tenant> const& tenants) {
    Table table{{"NAME", "VMS", "NETWORKS", "POOLS", "FIELDS", "ATTACHMENTS-MAX",
                 "RESERVED-VFS-MAX", "VERIFICATION-MINUTES-MAX"},
                {}};
    for (auto const& one : tenants)
        table.rows.push_back({cell(one.name), cell(one.vms), cell(one.networks), cell(one.pools),
                              one.fields ? cell(*one.fields) : "default",
                              cell(one.quota.attachments), cell(one.quota.reserved_vfs),
                              cell(one.quota.verification_minutes)});
    return table;
}

std::string tenant_page(Tenant const& one, Options const& options) {
    return as_table(tenant_table({one}), options.no_headers ? Headers::hidden : Headers::shown);
}

Result<void> show_tenant(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = tenant_path(name)}));
    return print_answer<Tenant>(
        response, options, [](Tenant const& one) { return tenant_table({one}); }, tenant_page);
}

Result<void> set_tenant(Options const& options, std::string const& name, std::string const& file) {
    VFMGR_TRY(auto body, read_document(file));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const settled,
              change(connection, options,
                     {.method = "PUT", .path = tenant_path(name), .body = std::move(body)},
                     tenant_table({})));
    if (settled.shown) return {};
    return show_tenant(options, name);
}

Result<void> remove_tenant(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options, {.method = "DELETE", .path = tenant_path(name)},
                             fmt::format("tenant {} is removed", name));
}

}  // namespace

void add_tenant_commands(CLI::App& app, Session& session) {
    auto* const tenant =
        add_group(app, "tenant", "show and configure who shares this host, and what each may use");
    add_command(*tenant, session, "list", "list the tenants of the host",
                [](Options const& options) {
                    return print_list<Tenant>(options, {.path = tenants_path}, tenant_table);
                });
    Named const by_name{"TENANT", "name of the tenant"};
    add_named(*tenant, session, "show", "show one tenant", by_name, show_tenant);
    auto const [command, name, file] =
        add_named(*tenant, session, "set", "make a tenant, or replace it",
                  {"TENANT", "1 to 16 of a-z and 0-9"}, set_tenant, std::string());
    command
        ->add_option("-f,--file", file,
                     "read the whole tenant as YAML or JSON from FILE; - for standard input")
        ->type_name("FILE")
        ->required();
    add_named(*tenant, session, "remove", "remove a tenant that has no token and no reservation",
              by_name, remove_tenant);
}

}  // namespace vfmgr
