// SPDX-License-Identifier: Apache-2.0
#include "service/api_setting_keys.hpp"

#include <charconv>

#include "service/auth/origin.hpp"

namespace vfmgr {
namespace {

// "none" removes a role that the defaults or an earlier file assigned.
template <class Map>
std::string set_role(Map& roles, typename Map::key_type const& who, toml::node const& node) {
    auto const value = node.value_exact<std::string>();
    auto const role = value ? enum_value<Role>(*value) : std::nullopt;
    if (role)
        roles[who] = *role;
    else if (value == "none")
        roles.erase(who);
    else
        return fmt::format("must be one of {}, none", enum_choices<Role>());
    return {};
}

// "operator", or {role = "operator", tenant = "blue"}.
std::string set_client(std::map<std::string, ClientRole>& clients, std::string const& name,
                       toml::node const& node) {
    auto const* const table = node.as_table();
    if (!table) return set_role(clients, name, node);
    auto const word = [&](char const* key) {
        auto const* const value = table->get(key);
        return value ? value->value_exact<std::string>() : std::optional<std::string>();
    };
    auto const role = enum_value<Role>(word("role").value_or(""));
    auto const tenant = word("tenant");
    if (table->size() != 2 || !role || !tenant)
        return "must be a role, or of the form {role = \"operator\", tenant = \"blue\"}";
    if (!can_be_a_tenants(*tenant))
        return fmt::format("has a tenant whose name {}", rule_of_tenant_names);
    if (*role == Role::admin) return "can't be an admin of a tenant: an admin has no limits";
    clients[name] = ClientRole(*role, *tenant);
    return {};
}

Setter host_name_list(std::vector<std::string>& out) {
    return list_of(
        out, [](std::string const& word) { return host_name(word); },
        "names and addresses such as [\"vfmgr.example.com\", \"192.0.2.1\"]");
}

Setter group_roles(ConfigTables& tables, RoleSettings& roles) {
    return tables.entries("roles.groups.",
                          [&roles](std::string const& name, toml::node const& node) {
                              return set_role(roles.groups, name, node);
                          });
}

Setter uid_roles(ConfigTables& tables, RoleSettings& roles) {
    return tables.entries("roles.uids.",
                          [&roles](std::string const& name, toml::node const& node) -> std::string {
                              std::uint32_t uid = 0;
                              auto const* const end = name.data() + name.size();
                              auto const parsed = std::from_chars(name.data(), end, uid);
                              if (parsed.ec != std::errc{} || parsed.ptr != end)
                                  return "must be named by a uid";
                              return set_role(roles.uids, uid, node);
                          });
}

Setter client_roles(ConfigTables& tables, RoleSettings& roles) {
    return tables.entries("tls.clients.",
                          [&roles](std::string const& name, toml::node const& node) -> std::string {
                              if (!http::valid_certificate_name(name))
                                  return "must be named by 1 to 255 visible ASCII characters";
                              return set_client(roles.clients, name, node);
                          });
}

}  // namespace

Setter unix_keys(ConfigTables& tables, UnixSettings& unix_socket) {
    return tables.table("listen.unix.", {{"path", absolute_path(unix_socket.path)},
                                         {"group", text(unix_socket.group)}});
}

Keys tls_keys(TlsSettings& tls) {
    return {{"address", ip_address(tls.address)},
            {"port", integer(tls.port, {1, 65535})},
            {"certificate_file", absolute_path(tls.certificate_file)},
            {"key_file", absolute_path(tls.key_file)},
            {"host_names", host_name_list(tls.host_names)}};
}

Keys client_keys(ConfigTables& tables, TlsSettings& tls, RoleSettings& roles) {
    return {{"client_ca_file", absolute_path(tls.client_ca_file)},
            {"client_crl_file", absolute_path(tls.client_crl_file)},
            {"clients", client_roles(tables, roles)}};
}

Setter role_keys(ConfigTables& tables, RoleSettings& roles) {
    return tables.table(
        "roles.", {{"groups", group_roles(tables, roles)}, {"uids", uid_roles(tables, roles)}});
}

Keys limit_keys(http::Limits& limits, EventStreamLimits& events, RateLimit& changes) {
    return {{"body_bytes_max", integer(limits.body_bytes_max, {1024, 16 * 1024 * 1024})},
            {"header_bytes_max", integer(limits.header_bytes_max, {1024, 1024 * 1024})},
            {"connections_max", integer(limits.connections_max, {1, 65536})},
            {"connections_per_peer_max", integer(limits.connections_per_peer_max, {1, 65536})},
            {"read_seconds_max", integer(limits.read_seconds_max, some_seconds)},
            {"idle_seconds_max", integer(limits.idle_seconds_max, some_seconds)},
            {"answer_seconds_max", integer(limits.answer_seconds_max, some_seconds)},
            {"strangers_per_peer_max", integer(limits.strangers_per_peer_max, {1, 65536})},
            {"first_request_seconds_max", integer(limits.first_request_seconds_max, some_seconds)},
            {"event_streams_max", integer(events.streams_max, {1, 65536})},
            {"event_streams_per_peer_max", integer(events.streams_per_peer_max, {1, 65536})},
            {"event_backlog_max", integer(events.recent.events, {16, 65536})},
            {"changes_burst", integer(changes.burst, {1, 1'000'000})},
            {"changes_per_second", integer(changes.per_second, {1, 1'000'000})}};
}

void check_groups(UnixSettings const& unix_socket, RoleSettings const& roles,
                  std::vector<Violation>& violations) {
    auto const check_group = [&](std::string const& setting, std::string const& name) {
        if (!resolve_roles({{name, Role::viewer}}, {}).unknown_groups.empty())
            violations.push_back({setting, fmt::format("this host has no group '{}'", name)});
    };
    check_group("listen.unix.group", unix_socket.group);
    for (auto const& [name, role] : roles.groups) check_group("roles.groups." + name, name);
}

}  // namespace vfmgr
