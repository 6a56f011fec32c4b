// SPDX-License-Identifier: Apache-2.0
// The settings of an API that vfmgrd and vfmgr-fleetd share: where it listens, and who has which
// role. Values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/daemon.hpp"
#include "service/auth/authenticate.hpp"
#include "service/event_limits.hpp"
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

// Per principal: requests that change something or are denied.
inline constexpr RateLimit changes_default{.burst = 100, .per_second = 20};

[[nodiscard]] inline http::TlsListen tls_listen(TlsSettings const& tls) {
    return {tls.address,  tls.port,           tls.certificate_file,
            tls.key_file, tls.client_ca_file, tls.client_crl_file};
}

// Checks that the groups exist, and adds a violation for each that does not.
void check_groups(UnixSettings const& unix_socket, RoleSettings const& roles,
                  std::vector<Violation>& violations);

}  // namespace vfmgr
