// SPDX-License-Identifier: Apache-2.0
// Transport code that needs no Beast, and the server's request parser as a pure function. Internal
// to api/http and its tests; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/http/http.hpp"
#include "api/os/random.hpp"

namespace vfmgr::http {

// Accepts [A-Za-z0-9._-]{1,64}: an X-Request-Id of this form is kept.
[[nodiscard]] bool valid_request_id(std::string_view text);
// 32 hex digits; they name a log line and protect nothing.
[[nodiscard]] inline std::string random_request_id() {
    return random_hex(16);
}

// Returns a whole response for a peer that gets no connection or has to give up its own.
[[nodiscard]] std::string refusal_text(Error const& error);

// Parses the first request in `bytes` exactly as the server does, or returns its answer.
[[nodiscard]] tl::expected<Request, Response> read_request(std::string_view bytes,
                                                           Limits const& limits);

}  // namespace vfmgr::http
