// SPDX-License-Identifier: Apache-2.0
// How a replica reaches a host, and on whose behalf. Pure; any thread.
#pragma once

#include <string_view>

#include "api/http/http.hpp"
#include "service/auth/authenticate.hpp"
#include "service/fleet/records.hpp"

namespace vfmgr::fleet {

// The host answers at its URL, with the key that it joined with, whatever its certificate's names
// and time are: the key is what was exchanged.
[[nodiscard]] Result<http::TlsTarget> target_of(HostRecord const& host);

// Has the host judge the request again, as one of that principal.
void set_on_behalf(http::Request& request, Principal const& who);

}  // namespace vfmgr::fleet
