// SPDX-License-Identifier: Apache-2.0
// Operations: requested, running or done.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page_of_rows.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t wait_seconds_max = 60;

// Answers when the operation has ended, or with its state when the wait is over.
Result<Query<http::Response>> show_operation(Engine& engine, Call const& call) {
    VFMGR_TRY(auto const wait, whole_number(call, "wait", {0, wait_seconds_max, 0}));
    auto const& id = call.ids.at("id");
    return engine.operation(id, std::chrono::seconds(wait), call.who.tenant)
        .then([id](std::optional<Operation> const& operation) -> Result<http::Response> {
            if (operation) return json_response(200, *operation);
            return fail(no_such_operation(id));
        });
}

Result<Query<http::Response>> list_operations(Engine& engine, Call const& call) {
    OperationFilter filter;
    VFMGR_TRY(filter.state, choice_filter<OperationState>(call, "state"));
    VFMGR_TRY(filter.kind, choice_filter<OperationKind>(call, "kind"));
    VFMGR_TRY(auto const attachment, text_filter(call, "attachment"));
    if (!attachment.empty()) filter.subject = "/v1/attachments/" + attachment;
    VFMGR_TRY(auto const range, range_of(call));
    auto const without_spans = [](Rows<Operation> rows) -> Result<Rows<Operation>> {
        for (auto& operation : rows.items) operation.spans.clear();  // hundreds of each, perhaps
        return rows;
    };
    auto const rows = engine.operations(std::move(filter), range, call.who.tenant);
    return page_of_rows(call, rows.then(without_spans));
}

Query<http::Response> cancel_operation(Engine& engine, Call const& call) {
    auto const only_of = call.who.role == Role::admin ? std::nullopt : std::optional(call.who.name);
    return engine.cancel(call.ids.at("id"), only_of, call.who.tenant)
        .then([](Operation const& operation) -> Result<http::Response> {
            return json_response(202, operation);
        });
}

}  // namespace

std::vector<Route> operation_routes(Engine& engine) {
    return {
        {"GET", "/v1/operations", Role::viewer,
         [&engine](Call const& call, Snapshot const&) { return list_operations(engine, call); },
         list_parameters({"state", "kind", "attachment"}), for_tenants_too},
        {"GET",
         "/v1/operations/{id}",
         Role::viewer,
         [&engine](Call const& call, Snapshot const&) { return show_operation(engine, call); },
         {"wait"},
         for_tenants_too},
        {"POST",
         "/v1/operations/{id}/cancel",
         Role::operator_,
         [&engine](Call const& call, Snapshot const&) { return cancel_operation(engine, call); },
         {},
         for_tenants_too},
    };
}

}  // namespace vfmgr
