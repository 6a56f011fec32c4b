// SPDX-License-Identifier: Apache-2.0
#include "service/routes/api.hpp"

namespace vfmgr {

std::vector<Route> metrics_routes(Metrics const& metrics) {
    auto const answer = [&metrics](Call const&, Snapshot const&) {
        http::Response response;
        response.body = metrics.text();
        response.content_type = "text/plain; version=0.0.4; charset=utf-8";
        return response;
    };
    return {{"GET", "/metrics", Role::viewer, answer}};
}

}  // namespace vfmgr
