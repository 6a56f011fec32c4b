// SPDX-License-Identifier: Apache-2.0
// Turns a handler's exception into an answer. Internal to api/http; runs on the io thread.
#pragma once

#include <string>

#include "api/http/http.hpp"

namespace vfmgr::http {

// `id` is the request's X-Request-Id.
inline void call_handler(Handler const& handler, Request request, Respond const& respond,
                         std::string const& id) {
    auto const path = request.path;
    auto const ended = [&](std::string const& by) {
        respond(problem_response({Problem::internal, "an exception ended the request" + by,
                                  "report this with the daemon's log"},
                                 path, id));
    };
    try {
        handler(std::move(request), respond);
    } catch (std::exception const& bug) {
        ended(std::string(": ") + bug.what());
    } catch (...) {
        ended("");
    }
}

}  // namespace vfmgr::http
