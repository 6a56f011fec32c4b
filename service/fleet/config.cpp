// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/config.hpp"

#include <unistd.h>

#include <fmt/ranges.h>

#include <array>

#include "api/types/text.hpp"
#include "service/api_setting_keys.hpp"
#include "service/auth/origin.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::string_view manual = "vfmgr-fleetd(8)";
constexpr std::size_t replica_name_max = 63;
constexpr std::string_view https = "https://";
constexpr std::string_view http_only = "http://";

std::string host_name_of_this() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return {};
    return name.data();
}

bool can_be_a_replicas(std::string const& name) {
    return is_plain_name(name, "-._", replica_name_max);
}

std::optional<Authority> authority_in(std::string_view url, std::string_view scheme) {
    if (!url.starts_with(scheme)) return std::nullopt;
    return parse_authority(url.substr(scheme.size()));
}

bool is_loopback(std::string const& host) {
    return host == "127.0.0.1" || host == "::1" || host == "localhost";
}

// Without TLS, whoever is on the way to etcd is an admin of every host.
bool can_be_etcds(std::string const& url) {
    if (authority_in(url, https)) return true;
    auto const plain = authority_in(url, http_only);
    return plain && is_loopback(plain->host);
}

Setter replica_name(std::string& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::string>();
        if (!value || !can_be_a_replicas(*value))
            return fmt::format("must be 1 to {} letters, digits, '-', '.' and '_'",
                               replica_name_max);
        out = *value;
        return {};
    };
}

Setter https_url(std::string& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::string>();
        if (!value || !authority_in(*value, https))
            return "must be of the form \"https://fleet1.example:8480\"";
        out = *value;
        return {};
    };
}

Setter endpoint_list(std::vector<std::string>& out) {
    return list_of(
        out,
        [](std::string const& url) {
            return can_be_etcds(url) ? std::optional(url) : std::nullopt;
        },
        "URLs such as [\"https://10.0.0.1:2379\"], which are http:// on this host only");
}

Setter key_prefix(std::string& out) {
    return [&out](toml::node const& node) -> std::string {
        auto const value = node.value_exact<std::string>();
        if (!value || !value->starts_with('/') || !value->ends_with('/'))
            return "must begin and end with /, such as \"/vfmgr/\"";
        out = *value;
        return {};
    };
}

void read(ConfigTables& tables, toml::table const& root, Config& config) {
    auto& etcd = config.etcd;
    auto listen_tls = tls_keys(config.tls);
    listen_tls.emplace("ca_file", absolute_path(config.ca_file));
    auto limits = limit_keys(config.limits, config.events, config.changes);
    limits.merge(
        Keys{{"worker_threads", integer(config.workers.threads, {2, 256})},
             {"waiting_max", integer(config.workers.waiting_max, {1, 65536})},
             {"waiting_per_principal_max", integer(config.workers.waiting_each_max, {1, 65536})}});
    tables.read_all(
        root, "",
        {{"name", replica_name(config.name)},
         {"url", https_url(config.url)},
         {"etcd", tables.table("etcd.", {{"endpoints", endpoint_list(etcd.endpoints)},
                                         {"prefix", key_prefix(etcd.prefix)},
                                         {"ca_file", absolute_path(etcd.ca_file)},
                                         {"certificate_file", absolute_path(etcd.certificate_file)},
                                         {"key_file", absolute_path(etcd.key_file)}})},
         {"listen",
          tables.table("listen.", {{"unix", unix_keys(tables, config.unix_socket)},
                                   {"tls", tables.table("listen.tls.", std::move(listen_tls))}})},
         {"tls", tables.table("tls.", client_keys(tables, config.tls, config.roles))},
         {"roles", role_keys(tables, config.roles)},
         {"limits", tables.table("limits.", std::move(limits))}});
}

// What no single key shows.
std::vector<std::string> contradictions(Config const& config) {
    std::vector<std::string> found;
    auto const demand = [&](auto const& value, char const* key, char const* what) {
        if (value.empty()) found.push_back(fmt::format("{} is missing: {}", key, what));
    };
    demand(config.name, "name", "the host's own name can't be a replica's");
    demand(config.url, "url", "where other replicas and clients reach this one");
    demand(config.etcd.endpoints, "etcd.endpoints", "where etcd's members are");
    demand(config.tls.certificate_file, "listen.tls.certificate_file",
           "this replica's certificate");
    demand(config.tls.key_file, "listen.tls.key_file", "the key of this replica's certificate");
    demand(config.ca_file, "listen.tls.ca_file", "the fleet's CA, which signs the certificates");
    if (config.etcd.certificate_file.empty() != config.etcd.key_file.empty())
        found.emplace_back("etcd.certificate_file and etcd.key_file must be given together");
    if (!config.tls.client_crl_file.empty() && config.tls.client_ca_file.empty())
        found.emplace_back("tls.client_crl_file needs tls.client_ca_file");
    return found;
}

Config with_defaults() {
    Config config;
    if (auto name = host_name_of_this(); can_be_a_replicas(name)) config.name = std::move(name);
    return config;
}

void use_own_files(EtcdSettings& etcd, Config const& config) {
    if (etcd.ca_file.empty()) etcd.ca_file = config.ca_file;
    if (!etcd.certificate_file.empty()) return;
    etcd.certificate_file = config.tls.certificate_file;
    etcd.key_file = config.tls.key_file;
}

}  // namespace

http::TlsListen tls_listen(Config const& config) {
    auto where = vfmgr::tls_listen(config.tls);
    // Other replicas are let in by the fleet's CA in any case.
    if (where.client_ca_file.empty())
        where.client_ca_file = config.ca_file;
    else
        where.fleet_ca_file = config.ca_file;
    return where;
}

Result<Config> load_config(ConfigPaths const& paths) {
    auto config = with_defaults();
    auto violations = read_config_files(
        paths,
        [&config](ConfigTables& tables, toml::table const& root) { read(tables, root, config); });
    if (violations.empty())
        for (auto& wrong : contradictions(config))
            violations.push_back({paths.file, std::move(wrong)});
    VFMGR_CHECK(none_of(std::move(violations), manual));
    use_own_files(config.etcd, config);
    return config;
}

Result<void> check_named(Config const& config) {
    std::vector<Violation> violations;
    check_groups(config.unix_socket, config.roles, violations);
    auto const check = [&](char const* setting, http::TlsListen const& files) {
        if (auto const usable = http::check_certificate(files); !usable)
            violations.push_back({setting, detail_with_causes(usable.error())});
    };
    check("listen.tls", tls_listen(config));
    http::TlsListen etcd;
    etcd.certificate_file = config.etcd.certificate_file;
    etcd.key_file = config.etcd.key_file;
    etcd.client_ca_file = config.etcd.ca_file;
    check("etcd", etcd);
    return none_of(std::move(violations), manual);
}

Config applicable(Config const& running, Config wanted) {
    wanted.name = running.name;
    wanted.url = running.url;
    wanted.etcd = running.etcd;
    wanted.unix_socket = running.unix_socket;
    wanted.tls.address = running.tls.address;
    wanted.tls.port = running.tls.port;
    wanted.workers = running.workers;
    return wanted;
}

SettingValues values_of(Config const& config) {
    SettingValues values{
        {"name", config.name},
        {"url", config.url},
        {"etcd.endpoints", fmt::format("[{}]", fmt::join(config.etcd.endpoints, ", "))},
        {"etcd.prefix", config.etcd.prefix},
        {"etcd.ca_file", config.etcd.ca_file},
        {"etcd.certificate_file", config.etcd.certificate_file},
        {"etcd.key_file", config.etcd.key_file},
        {"listen.tls.ca_file", config.ca_file},
        {"limits.worker_threads", std::to_string(config.workers.threads)},
        {"limits.waiting_max", std::to_string(config.workers.waiting_max)},
        {"limits.waiting_per_principal_max", std::to_string(config.workers.waiting_each_max)}};
    add_values(values, config.unix_socket);
    add_values(values, config.tls);
    add_values(values, config.roles);
    add_limits(values, config.limits, config.events, config.changes);
    return values;
}

}  // namespace vfmgr::fleet
