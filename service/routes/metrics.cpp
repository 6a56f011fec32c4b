// SPDX-License-Identifier: Apache-2.0
#include "service/metrics/published.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

Result<http::Response> text_of(Measured const& measured, Snapshot const& now,
                               Result<std::vector<PfTraffic>> const& traffic) {
    auto read = published_metrics(now);
    auto const add = [&](MetricFamilies const& more) {
        read.insert(read.end(), more.begin(), more.end());
    };
    if (traffic) add(traffic_metrics(*traffic));
    add(load_metrics(measured.load()));
    http::Response response;
    VFMGR_TRY(response.body, measured.counted.text(read));
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
}

}  // namespace

// Made on the thread that reads the traffic: the text of a thousand VFs takes a while.
std::vector<Route> metrics_routes(Measured measured) {
    auto const answer = [measured](Call const&, Snapshot const& now) {
        return measured.traffic.query().then(
            [measured, now](TrafficQuery::Shared const& traffic) -> Result<http::Response> {
                return text_of(measured, now, *traffic);
            });
    };
    return {{"GET", "/metrics", Role::viewer, answer}};
}

}  // namespace vfmgr
