// SPDX-License-Identifier: Apache-2.0
// vfmgr-fleetd's settings: /etc/vfmgr/fleetd.toml, then each file of /etc/vfmgr/fleetd.conf.d in
// order of name; a later file wins key by key. What is desired of hosts is not here but in etcd. A
// value; read once at start and again on reload.
#pragma once

#include <string>
#include <vector>

#include "service/api_settings.hpp"
#include "service/config_paths.hpp"
#include "service/fleet/workers.hpp"
#include "service/program.hpp"
#include "service/setting_values.hpp"

namespace vfmgr::fleet {

struct EtcdSettings {
    std::vector<std::string> endpoints;  // "https://10.0.0.1:2379"
    std::string prefix = "/vfmgr/";      // of all keys; begins and ends with '/'
    std::string ca_file;                 // these empty: those of [listen.tls]
    std::string certificate_file;
    std::string key_file;
    bool operator==(EtcdSettings const&) const = default;
};

struct Config {
    std::string name;  // of this replica; by default the host's own
    std::string url;   // where other replicas and clients reach it: "https://fleet1.example:8480"
    EtcdSettings etcd;
    UnixSettings unix_socket{.path = "/run/vfmgr-fleetd/fleetd.sock", .group = "vfmgr"};
    TlsSettings tls{.enabled = true,
                    .address = "0.0.0.0",
                    .port = 8480,
                    .certificate_file = {},
                    .key_file = {},
                    .client_ca_file = {},
                    .client_crl_file = {},
                    .host_names = {}};
    std::string ca_file;  // [listen.tls]: the fleet's CA
    RoleSettings roles;
    http::Limits limits;
    EventStreamLimits events;
    RateLimit changes = changes_default;
    WorkerLimits workers;
};

[[nodiscard]] inline ConfigPaths default_paths() {
    return {.file = "/etc/vfmgr/fleetd.toml", .folder = "/etc/vfmgr/fleetd.conf.d"};
}
[[nodiscard]] inline Program this_program() {
    return {.unit = "vfmgr-fleetd", .settings = "/etc/vfmgr/fleetd.toml"};
}
// Clients show certificates of client_ca_file; without one, of the fleet's CA.
[[nodiscard]] http::TlsListen tls_listen(Config const& config);

// As vfmgr::load_config(). A key that has no default is a violation where it is missing.
[[nodiscard]] Result<Config> load_config(ConfigPaths const& paths);

// Checks that what the configuration names exists: groups, certificates, keys and CAs. Each one
// that is missing or unusable is a violation whose pointer is the setting.
[[nodiscard]] Result<void> check_named(Config const& config);

// Returns `wanted` with the running values of all keys that only a start applies.
[[nodiscard]] Config applicable(Config const& running, Config wanted);
[[nodiscard]] SettingValues values_of(Config const& config);

}  // namespace vfmgr::fleet
