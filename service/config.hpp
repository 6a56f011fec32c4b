// SPDX-License-Identifier: Apache-2.0
// The daemon's settings: /etc/vfmgr/vfmgr.toml, then each file of /etc/vfmgr/conf.d in order of
// name; a later file wins key by key. The desired state of PFs and VFs is not here but in the
// store. A value; read once at start and again on reload.
#pragma once

#include <string>

#include "service/api_settings.hpp"
#include "service/host_rules.hpp"

namespace vfmgr {

struct Config {
    std::string state_dir = "/var/lib/vfmgr";
    UnixSettings unix_socket;
    TlsSettings tls;
    std::string console_folder = "/usr/share/vfmgr/web";
    RoleSettings roles;
    HostRules rules;
    http::Limits limits;
    EventStreamLimits events;
    RateLimit changes = changes_default;
    // The same for each replica of the fleet, which acts for many.
    RateLimit fleet_changes{.burst = 1000, .per_second = 200};
};

[[nodiscard]] inline std::string store_file(Config const& config) {
    return config.state_dir + "/vfmgr.db";
}

// A missing file leaves the defaults, unless the admin named it. Every fault, including an unknown
// key, is a violation whose pointer is "file:line".
[[nodiscard]] Result<Config> load_config(ConfigPaths const& paths);

// Checks that what the configuration names exists: groups, the certificate and its key, the client
// CAs and their revocation lists. Each one that is missing or unusable is a violation whose pointer
// is the setting.
[[nodiscard]] Result<void> check_named(Config const& config);

}  // namespace vfmgr
