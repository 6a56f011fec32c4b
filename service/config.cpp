// SPDX-License-Identifier: Apache-2.0
#include "service/config.hpp"

#include <charconv>
#include <functional>

#include "service/auth/authenticate.hpp"
#include "service/auth/origin.hpp"
#include "service/config_tables.hpp"

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

// vfmgrd of version 0.1 opened this socket itself. Files that say the default still hold.
std::string moved_to_the_socket_unit(toml::node const& node) {
    constexpr std::int64_t guest_plane_port = 8471;
    if (node.value_exact<std::int64_t>() == guest_plane_port) return {};
    return "is not read any more: set ListenStream= of vfmgr-guestd.socket (vfmgr-guestd(8))";
}

Setter host_name_list(std::vector<std::string>& out) {
    return list_of(
        out, [](std::string const& word) { return host_name(word); },
        "names and addresses such as [\"vfmgr.example.com\", \"192.0.2.1\"]");
}

class ConfigReader {
  public:
    ConfigReader(ConfigTables& tables, Config& config) : tables_(tables), config_(config) {}

    void read(toml::table const& root) {
        auto& c = config_;
        auto keys = host_rule_keys(tables_, c.rules);
        keys.merge(
            Keys{{"state_dir", absolute_path(c.state_dir)},
                 {"listen", table("listen.", {{"unix", unix_keys()}, {"tls", tls_keys()}})},
                 {"guest_plane", table("guest_plane.", {{"vsock_port", moved_to_the_socket_unit}})},
                 {"console", table("console.", {{"folder", absolute_path(c.console_folder)}})},
                 {"tls", client_keys()},
                 {"roles", table("roles.", {{"groups", group_roles()}, {"uids", uid_roles()}})},
                 {"limits", limit_keys()}});
        tables_.read_all(root, "", keys);
    }

  private:
    Setter unix_keys() {
        return table("listen.unix.", {{"path", absolute_path(config_.unix_socket.path)},
                                      {"group", text(config_.unix_socket.group)}});
    }
    Setter tls_keys() {
        auto& tls = config_.tls;
        return table("listen.tls.", {{"enabled", boolean(tls.enabled)},
                                     {"address", ip_address(tls.address)},
                                     {"port", integer(tls.port, {1, 65535})},
                                     {"certificate_file", absolute_path(tls.certificate_file)},
                                     {"key_file", absolute_path(tls.key_file)},
                                     {"host_names", host_name_list(tls.host_names)}});
    }
    Setter client_keys() {
        return table("tls.", {{"client_ca_file", absolute_path(config_.tls.client_ca_file)},
                              {"client_crl_file", absolute_path(config_.tls.client_crl_file)},
                              {"clients", client_roles()}});
    }
    Setter limit_keys() {
        auto& limits = config_.limits;
        return table(
            "limits.",
            {{"body_bytes_max", integer(limits.body_bytes_max, {1024, 16 * 1024 * 1024})},
             {"header_bytes_max", integer(limits.header_bytes_max, {1024, 1024 * 1024})},
             {"connections_max", integer(limits.connections_max, {1, 65536})},
             {"connections_per_peer_max", integer(limits.connections_per_peer_max, {1, 65536})},
             {"read_seconds_max", integer(limits.read_seconds_max, some_seconds)},
             {"idle_seconds_max", integer(limits.idle_seconds_max, some_seconds)},
             {"answer_seconds_max", integer(limits.answer_seconds_max, some_seconds)},
             {"strangers_per_peer_max", integer(limits.strangers_per_peer_max, {1, 65536})},
             {"first_request_seconds_max", integer(limits.first_request_seconds_max, some_seconds)},
             {"event_streams_max", integer(config_.events.streams_max, {1, 65536})},
             {"event_streams_per_peer_max",
              integer(config_.events.streams_per_peer_max, {1, 65536})},
             {"event_backlog_max", integer(config_.events.recent.events, {16, 65536})},
             {"changes_burst", integer(config_.changes.burst, {1, 1'000'000})},
             {"changes_per_second", integer(config_.changes.per_second, {1, 1'000'000})}});
    }
    Setter group_roles() {
        return tables_.entries("roles.groups.",
                               [this](std::string const& name, toml::node const& node) {
                                   return set_role(config_.roles.groups, name, node);
                               });
    }
    Setter uid_roles() {
        return tables_.entries(
            "roles.uids.", [this](std::string const& name, toml::node const& node) -> std::string {
                std::uint32_t uid = 0;
                auto const* const end = name.data() + name.size();
                auto const parsed = std::from_chars(name.data(), end, uid);
                if (parsed.ec != std::errc{} || parsed.ptr != end) return "must be named by a uid";
                return set_role(config_.roles.uids, uid, node);
            });
    }

    Setter client_roles() {
        return tables_.entries(
            "tls.clients.", [this](std::string const& name, toml::node const& node) -> std::string {
                if (!http::valid_certificate_name(name))
                    return "must be named by 1 to 255 visible ASCII characters";
                return set_client(config_.roles.clients, name, node);
            });
    }

    Setter table(std::string prefix, Keys keys) {
        return tables_.table(std::move(prefix), std::move(keys));
    }

    ConfigTables& tables_;
    Config& config_;
};

// What no single key shows.
std::vector<std::string> contradictions(Config const& config) {
    std::vector<std::string> found;
    auto const& tls = config.tls;
    if (tls.certificate_file.empty() != tls.key_file.empty())
        found.emplace_back(
            "listen.tls.certificate_file and listen.tls.key_file must be given together");
    if (!tls.client_ca_file.empty()) return found;
    if (!tls.client_crl_file.empty())
        found.emplace_back("tls.client_crl_file needs tls.client_ca_file");
    if (!config.roles.clients.empty()) found.emplace_back("tls.clients needs tls.client_ca_file");
    return found;
}

}  // namespace

Result<Config> load_config(ConfigPaths const& paths) {
    Config config;
    auto violations =
        read_config_files(paths, [&config](ConfigTables& tables, toml::table const& root) {
            ConfigReader(tables, config).read(root);
        });
    if (violations.empty())
        for (auto& wrong : contradictions(config))
            violations.push_back({paths.file, std::move(wrong)});
    VFMGR_CHECK(none_of(std::move(violations)));
    return config;
}

Result<void> check_named(Config const& config) {
    std::vector<Violation> violations;
    auto const check_group = [&](std::string const& setting, std::string const& name) {
        if (!resolve_roles({{name, Role::viewer}}, {}).unknown_groups.empty())
            violations.push_back({setting, fmt::format("this host has no group '{}'", name)});
    };
    check_group("listen.unix.group", config.unix_socket.group);
    for (auto const& [name, role] : config.roles.groups) check_group("roles.groups." + name, name);
    if (auto const usable = http::check_certificate(tls_listen(config.tls)); !usable)
        violations.push_back({"listen.tls", detail_with_causes(usable.error())});
    return none_of(std::move(violations));
}

}  // namespace vfmgr
