// SPDX-License-Identifier: Apache-2.0
// Operations: requested, running or done.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t wait_seconds_max = 60;
constexpr std::size_t operations_listed_max = 500;

Error no_operation(std::string const& id) {
    return {Problem::not_found, fmt::format("there is no operation {}", id),
            "operations are kept for 30 days; GET /v1/operations lists them"};
}

Error crowded(Call const& call) {
    return {Problem::unavailable,
            fmt::format("{} requests of {} already wait for operations", watchers_each_max,
                        call.who.name),
            "wait for one of them to be answered, or ask without wait"};
}

Client client_of(Call const& call) {
    auto const& presence = call.request.presence;
    if (!presence) return {call.who.name, {}};
    return {call.who.name, {presence, &presence->gone}};
}

// Answers when the operation has ended, or with its state when the wait is over.
void show_operation(Engine& engine, Clock& clock, Call const& call, http::Respond respond) {
    auto const wait = whole_number(call, "wait", {0, wait_seconds_max, 0});
    if (!wait) return respond(refusal(call, wait.error()));
    auto const deadline = clock.steady_now() + std::chrono::seconds(*wait);
    auto const ready = [call, respond](Control::State& state, Watch how) {
        if (how == Watch::crowded) return respond(refusal(call, crowded(call))), true;
        auto const operation = state.store.operation(call.ids.at("id"));
        if (!operation) return respond(refusal(call, operation.error())), true;
        if (!*operation) return respond(refusal(call, no_operation(call.ids.at("id")))), true;
        if (!finished(**operation) && how != Watch::expired) return false;
        respond(json_response(200, **operation));
        return true;
    };
    auto const taken = engine.control().watch(client_of(call), deadline, ready);
    if (!taken) respond(refusal(call, taken.error()));
}

void list_operations(Engine& engine, Call const& call, http::Respond respond) {
    answer_in_turn(engine, call, std::move(respond), [call](Control::State& state) {
        auto const all = state.store.operations(operations_listed_max);
        return all ? list_response(*all) : refusal(call, all.error());
    });
}

}  // namespace

std::vector<Route> operation_routes(Engine& engine, Clock& clock) {
    return {
        {"GET", "/v1/operations", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             list_operations(engine, call, std::move(respond));
         }},
        {"GET",
         "/v1/operations/{id}",
         Role::viewer,
         [&engine, &clock](Call const& call, http::Respond respond) {
             show_operation(engine, clock, call, std::move(respond));
         },
         {"wait"}},
    };
}

}  // namespace vfmgr
