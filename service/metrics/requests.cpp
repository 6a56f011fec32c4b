// SPDX-License-Identifier: Apache-2.0
#include "service/metrics/requests.hpp"

#include <fmt/format.h>
#include <prometheus/gauge.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "service/routes/endpoint.hpp"

namespace vfmgr {
namespace {

// A client may send any word as its method.
std::string known_method(std::string const& method) {
    constexpr std::array<std::string_view, 6> methods{"GET",   "HEAD",   "POST",
                                                      "PATCH", "DELETE", "PUT"};
    return std::ranges::find(methods, method) != methods.end() ? method : "other";
}

}  // namespace

AnsweredRequests::AnsweredRequests(prometheus::Registry& registry)
    : requests_(prometheus::BuildCounter()
                    .Name("vfmgr_api_requests_total")
                    .Help("Requests to the API that were answered, by their route.")
                    .Register(registry)) {}

void AnsweredRequests::count(Endpoint const* endpoint, std::string const& method, unsigned status) {
    auto const counter_of = [&](std::string const& path, std::string const& verb) {
        return &requests_.Add(
            {{"method", verb}, {"route", path}, {"code", std::to_string(status)}});
    };
    if (endpoint == nullptr) return counter_of("", known_method(method))->Increment();
    // One that is passed on has no method of its own.
    if (endpoint->method.empty())
        return counter_of(endpoint->path, known_method(method))->Increment();
    std::lock_guard const lock(mutex_);
    auto& counter = by_endpoint_[{endpoint, status}];
    if (counter == nullptr) counter = counter_of(endpoint->path, endpoint->method);
    counter->Increment();
}

void add_build_info(prometheus::Registry& registry, std::string const& program) {
    prometheus::BuildGauge()
        .Name("vfmgr_build_info")
        .Help(fmt::format("The version of the {} that answers.", program))
        .Register(registry)
        .Add({{"version", VFMGR_VERSION}})
        .Set(1);
}

}  // namespace vfmgr
