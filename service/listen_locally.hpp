// SPDX-License-Identifier: Apache-2.0
// Listens on the unix socket of an API. Main thread.
#pragma once

#include "service/api_settings.hpp"

namespace vfmgr {

// On those that systemd's socket unit has named "local", or else on one that this makes.
[[nodiscard]] Result<void> listen_locally(UnixSettings const& unix_socket, http::Server& server,
                                          http::Handler const& handler);

}  // namespace vfmgr
