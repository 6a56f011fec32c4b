// SPDX-License-Identifier: Apache-2.0
// The daemon's settings: /etc/vfmgr/vfmgr.toml, then each file of /etc/vfmgr/conf.d in order of
// name; a later file wins key by key. The desired state of PFs and VFs is not here but in the
// store. A value; read once at start and again on reload.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/daemon.hpp"
#include "service/auth/authenticate.hpp"
#include "service/event_limits.hpp"
#include "service/host_rules.hpp"
#include "service/rate_limit.hpp"

namespace vfmgr {

struct UnixSettings {
    std::string path = "/run/vfmgr/vfmgr.sock";  // unused with systemd socket activation
    std::string group = "vfmgr";
    bool operator==(UnixSettings const&) const = default;
};

struct TlsSettings {
    bool enabled = false;
    std::string address = "127.0.0.1";
    std::uint16_t port = 8470;
    std::string certificate_file;  // both empty: self-signed, created in state_dir at first start
    std::string key_file;
    std::string client_ca_file;  // empty: no client is asked for a certificate
    std::string client_crl_file;
    std::vector<std::string> host_names;  // besides the host's own and the certificate's
    bool operator==(TlsSettings const&) const = default;
};

struct RoleSettings {
    std::map<std::string, Role> groups = {{"vfmgr", Role::operator_}};
    std::map<std::uint32_t, Role> uids;
    std::map<std::string, ClientRole> clients;  // by the name in their certificate
    bool operator==(RoleSettings const&) const = default;
};

struct Config {
    std::string state_dir = "/var/lib/vfmgr";
    UnixSettings unix_socket;
    TlsSettings tls;
    std::string console_folder = "/usr/share/vfmgr/web";
    RoleSettings roles;
    HostRules rules;
    http::Limits limits;
    EventStreamLimits events;
    // Per principal: requests that change something or are denied.
    RateLimit changes{.burst = 100, .per_second = 20};
};

[[nodiscard]] inline std::string store_file(Config const& config) {
    return config.state_dir + "/vfmgr.db";
}
[[nodiscard]] inline http::TlsListen tls_listen(TlsSettings const& tls) {
    return {tls.address,  tls.port,           tls.certificate_file,
            tls.key_file, tls.client_ca_file, tls.client_crl_file};
}

// A missing file leaves the defaults, unless the admin named it. Every fault, including an unknown
// key, is a violation whose pointer is "file:line".
[[nodiscard]] Result<Config> load_config(ConfigPaths const& paths);

// Checks that what the configuration names exists: groups, the certificate and its key, the client
// CAs and their revocation lists. Each one that is missing or unusable is a violation whose pointer
// is the setting.
[[nodiscard]] Result<void> check_named(Config const& config);

}  // namespace vfmgr
