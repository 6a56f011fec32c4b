// SPDX-License-Identifier: Apache-2.0
#include "service/config.hpp"

#include "service/api_setting_keys.hpp"
#include "service/host_rule_keys.hpp"

namespace vfmgr {
namespace {

// vfmgrd of version 0.1 opened this socket itself. Files that say the default still hold.
std::string moved_to_the_socket_unit(toml::node const& node) {
    constexpr std::int64_t guest_plane_port = 8471;
    if (node.value_exact<std::int64_t>() == guest_plane_port) return {};
    return "is not read any more: set ListenStream= of vfmgr-guestd.socket (vfmgr-guestd(8))";
}

class ConfigReader {
  public:
    ConfigReader(ConfigTables& tables, Config& config) : tables_(tables), config_(config) {}

    void read(toml::table const& root) {
        auto& c = config_;
        auto keys = host_rule_keys(tables_, c.rules);
        keys.merge(
            Keys{{"state_dir", absolute_path(c.state_dir)},
                 {"listen", table("listen.", {{"unix", unix_keys(tables_, c.unix_socket)},
                                              {"tls", listen_tls_keys()}})},
                 {"guest_plane", table("guest_plane.", {{"vsock_port", moved_to_the_socket_unit}})},
                 {"console", table("console.", {{"folder", absolute_path(c.console_folder)}})},
                 {"tls", table("tls.", client_keys(tables_, c.tls, c.roles))},
                 {"roles", role_keys(tables_, c.roles)},
                 {"limits", host_limit_keys()}});
        tables_.read_all(root, "", keys);
    }

  private:
    Setter listen_tls_keys() {
        auto keys = tls_keys(config_.tls);
        keys.emplace("enabled", boolean(config_.tls.enabled));
        return table("listen.tls.", std::move(keys));
    }
    Setter host_limit_keys() {
        auto keys = limit_keys(config_.limits, config_.events, config_.changes);
        auto& fleet = config_.fleet_changes;
        keys.emplace("fleet_changes_burst", integer(fleet.burst, {1, 1'000'000}));
        keys.emplace("fleet_changes_per_second", integer(fleet.per_second, {1, 1'000'000}));
        return table("limits.", std::move(keys));
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
    check_groups(config.unix_socket, config.roles, violations);
    if (auto const usable = http::check_certificate(tls_listen(config.tls)); !usable)
        violations.push_back({"listen.tls", detail_with_causes(usable.error())});
    return none_of(std::move(violations));
}

}  // namespace vfmgr
