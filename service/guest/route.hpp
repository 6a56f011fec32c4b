// SPDX-License-Identifier: Apache-2.0
// The guest plane's routes, parsed from method and path. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types/problem.hpp"

namespace vfmgr {

struct GuestRoute {
    enum class To {
        config,
        topology,
        enrol,
        start_run,
        open_session,
        open_stream,
        close_stream,
        report,
        run_error
    } to = To::config;
    std::string id;      // attachment, session or run in the path; [A-Za-z0-9-], at most 64
    std::string stream;  // for close_stream; the same characters
    std::vector<std::string> query;  // the parameters it accepts
};

[[nodiscard]] Result<GuestRoute> guest_route(std::string_view method, std::string_view path);

}  // namespace vfmgr
