// SPDX-License-Identifier: Apache-2.0
// The keys of an API's settings, each table's by itself: a program adds its own. Include in .cpp
// files only. One thread.
#pragma once

#include "service/api_settings.hpp"
#include "service/config_tables.hpp"

namespace vfmgr {

// What they set, and the tables, outlive them.
[[nodiscard]] Setter unix_keys(ConfigTables& tables, UnixSettings& unix_socket);
// The keys of the table [listen.tls].
[[nodiscard]] Keys tls_keys(TlsSettings& tls);
// The keys of the table [tls].
[[nodiscard]] Keys client_keys(ConfigTables& tables, TlsSettings& tls, RoleSettings& roles);
[[nodiscard]] Setter role_keys(ConfigTables& tables, RoleSettings& roles);
// The keys of the table [limits].
[[nodiscard]] Keys limit_keys(http::Limits& limits, EventStreamLimits& events, RateLimit& changes);

}  // namespace vfmgr
