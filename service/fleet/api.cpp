// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/api.hpp"

#include <iterator>
#include <utility>

#include "service/routes/conditions.hpp"

namespace vfmgr::fleet {
namespace {

http::Response response_of(Call const& call, Result<http::Response> answer) {
    if (!answer) return refusal(call, answer.error());
    if (call.request.method != "GET") return std::move(*answer);
    auto known = unless_known(call, std::move(*answer));
    return known ? std::move(*known) : refusal(call, known.error());
}

http::Response bug_response(Call const& call, std::exception const& bug) {
    return refusal(call, Error{Problem::internal, bug.what(), "report this as a bug"});
}

}  // namespace

std::function<void(Call const&, http::Respond)> at_once(Answering answer) {
    return [answer = std::move(answer)](Call const& call, http::Respond const& respond) {
        respond(response_of(call, answer(call)));
    };
}

std::function<void(Call const&, http::Respond)> on_workers(Workers& workers, Working answer) {
    return [&workers, answer = std::move(answer)](Call const& call, http::Respond const& respond) {
        // `respond` keeps the call.
        auto const accepted =
            workers.submit(call.who.name, [&call, answer, respond](std::stop_token const& stop) {
                if (call.request.presence && call.request.presence->gone) return;
                try {
                    respond(response_of(call, answer(call, stop)));
                } catch (std::exception const& bug) {
                    respond(bug_response(call, bug));
                }
            });
        if (!accepted) respond(refusal(call, accepted.error()));
    };
}

std::vector<FleetRoute> all_routes(FrontParts const& parts, FleetSeams const& seams) {
    auto all = service_routes(parts, seams);
    for (auto const& routes : {audit_routes(parts), seams.routes})
        all.insert(all.end(), routes.begin(), routes.end());
    return all;
}

http::Handler fleet_handler(std::vector<FleetRoute> routes, Gate gate) {
    std::vector<Endpoint> endpoints;
    for (auto const& route : routes) endpoints.push_back(route.endpoint);
    return dispatcher(std::move(endpoints), std::move(gate),
                      [routes = std::move(routes)](std::size_t place, Call const& call,
                                                   http::Respond const& respond) {
                          routes[place].handle(call, respond);
                      });
}

}  // namespace vfmgr::fleet
