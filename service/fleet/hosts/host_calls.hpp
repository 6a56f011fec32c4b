// SPDX-License-Identifier: Apache-2.0
// How a replica reaches a host, and on whose behalf. Any thread.
#pragma once

#include <string_view>

#include "api/http/client_pool.hpp"
#include "service/auth/authenticate.hpp"
#include "service/fleet/records.hpp"

namespace vfmgr::fleet {

// The host answers at its URL, with the key that it joined with, whatever its certificate's names
// and time are: the key is what was exchanged.
[[nodiscard]] Result<http::TlsTarget> target_of(HostRecord const& host);

// Sends to a host, and waits for its answer. Errors are the pool's.
[[nodiscard]] Result<http::Response> send_to(http::ClientPool& pool, HostRecord const& host,
                                             http::Request const& request,
                                             std::chrono::milliseconds timeout);

// Has the host judge the request again, as one of that principal.
void set_on_behalf(http::Request& request, Principal const& who);

}  // namespace vfmgr::fleet
