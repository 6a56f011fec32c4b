// SPDX-License-Identifier: Apache-2.0
// Operations: requested, running or done.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t wait_seconds_max = 60;
constexpr std::size_t operations_listed_max = 500;

// Answers when the operation has ended, or with its state when the wait is over.
Result<Query<http::Response>> show_operation(Engine& engine, Call const& call) {
    VFMGR_TRY(auto const wait, whole_number(call, "wait", {0, wait_seconds_max, 0}));
    auto const& id = call.ids.at("id");
    return engine.operation(id, std::chrono::seconds(wait))
        .then([id](std::optional<Operation> const& operation) -> Result<http::Response> {
            if (operation) return json_response(200, *operation);
            return fail(Problem::not_found, fmt::format("there is no operation {}", id),
                        "operations are kept for 30 days; GET /v1/operations lists them");
        });
}

}  // namespace

std::vector<Route> operation_routes(Engine& engine) {
    return {
        {"GET", "/v1/operations", Role::viewer,
         [&engine](Call const&, Snapshot const&) {
             return listed(engine.operations(operations_listed_max));
         }},
        {"GET",
         "/v1/operations/{id}",
         Role::viewer,
         [&engine](Call const& call, Snapshot const&) { return show_operation(engine, call); },
         {"wait"}},
    };
}

}  // namespace vfmgr
