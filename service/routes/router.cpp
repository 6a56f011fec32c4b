// SPDX-License-Identifier: Apache-2.0
#include "service/routes/router.hpp"

#include <memory>

#include "service/routes/kept_answers.hpp"

namespace vfmgr {
namespace {

std::vector<Endpoint> endpoints_of(std::vector<Route> const& routes) {
    std::vector<Endpoint> endpoints;
    for (auto const& route : routes)
        endpoints.push_back({route.method, route.path, route.role, route.query, route.audience});
    return endpoints;
}

struct RouterParts {
    Engine& engine;
    std::vector<Route> routes;
    Resume resume;
    std::shared_ptr<KeptAnswers> kept = std::make_shared<KeptAnswers>();
};

void answer_call(RouterParts const& answers, Route const& route, Call const& call,
                 http::Respond const& respond) {
    if (auto const* const published = std::get_if<Published>(&route.handle))
        return respond(answers.kept->answer(*published, call, answers.engine.snapshot()));
    handle(answers.engine, route, call, respond);
}

// Goes on when a fence that is new here is durable: from then on no earlier scheduler of the fleet
// changes anything. `respond` keeps the call.
void answer_heeding(std::shared_ptr<RouterParts const> const& answers, Route const& route,
                    Call const& call, http::Respond const& respond) {
    auto const desired = answers->engine.snapshot().desired;
    auto const& fleet = desired->fleet;
    if (!call.fence || (fleet && fleet->fence == *call.fence))
        return answer_call(*answers, route, call, respond);
    auto const go_on = [answers, &route, &call, respond](Result<bool> const& heeded) {
        if (!heeded) return respond(refusal(call, heeded.error()));
        try {
            answer_call(*answers, route, call, respond);
        } catch (std::exception const& bug) {
            respond(refusal(call, Error{Problem::internal, bug.what(), "report this as a bug"}));
        }
    };
    answers->engine.heed_fence(*call.fence)
        .ask(client_of(call), [answers, go_on](Result<bool> const& heeded) {
            if (!answers->resume) return go_on(heeded);
            answers->resume([go_on, heeded] { go_on(heeded); });
        });
}

}  // namespace

std::vector<std::string> nouns_of(std::vector<Route> const& routes) {
    return nouns_of(endpoints_of(routes));
}

http::Handler router(Engine& engine, std::vector<Route> routes, Gate gate, Resume const& resume) {
    auto endpoints = endpoints_of(routes);
    auto const answers =
        std::make_shared<RouterParts const>(RouterParts{engine, std::move(routes), resume});
    return dispatcher(std::move(endpoints), std::move(gate),
                      [answers](std::size_t place, Call const& call, http::Respond const& respond) {
                          answer_heeding(answers, answers->routes[place], call, respond);
                      });
}

}  // namespace vfmgr
