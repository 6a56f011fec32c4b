// SPDX-License-Identifier: Apache-2.0
// A served responder's routes, parsed from method and path. Pure; any thread.
#pragma once

#include "api/http/path_route.hpp"

namespace vfmgr::serve {

enum class To { info, open_session, open_stream, close_stream, report, drop_session };

// Its ids are the session's, and the stream's where the path has one.
[[nodiscard]] Result<http::FoundRoute<To>> responder_route(std::string_view method,
                                                           std::string_view path);

}  // namespace vfmgr::serve
