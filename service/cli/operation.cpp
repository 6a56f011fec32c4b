// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

Result<void> list_operations(Options const& options) {
    return print_list<Operation>(options, {.path = "/v1/operations"}, operation_table);
}

std::string milliseconds(std::int64_t us) {
    return fmt::format("{:.1f}", static_cast<double>(us) / 1000);
}

Table table_of_one(Operation const& operation) {
    return operation_table({operation});
}

Table span_table(Operation const& operation) {
    Table spans{{"AT_MS", "TOOK_MS", "KIND", "WHAT"}, {}};
    for (auto const& span : operation.spans)
        spans.rows.push_back({milliseconds(span.began_us), milliseconds(span.took_us),
                              cell(span.kind), cell(span.what)});
    return spans;
}

// What its time went to, and how much of it to each kind.
std::string timing_page(Operation const& operation, Options const& options) {
    if (operation.spans.empty() || !operation.finished_at)
        return "no timing is recorded: the operation still runs, or an earlier vfmgrd ran it\n";
    std::map<SpanKind, std::int64_t> sums;
    for (auto const& span : operation.spans) sums[span.kind] += span.took_us;
    auto other = std::chrono::duration_cast<std::chrono::microseconds>(*operation.finished_at -
                                                                       operation.created_at)
                     .count();
    Table summed{{"KIND", "TOOK_MS"}, {}};
    for (auto const& [kind, took] : sums) {
        summed.rows.push_back({cell(kind), milliseconds(took)});
        other -= took;
    }
    summed.rows.push_back({"other", milliseconds(std::max<std::int64_t>(other, 0))});
    return section("spans", span_table(operation), options) + section("sums", summed, options);
}

Result<void> show_operation(Options const& options, std::string const& id, bool timing) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/operations/" + id}));
    return print_answer<Operation>(response, options, timing ? span_table : table_of_one,
                                   timing ? timing_page : operation_page);
}

Result<void> wait_for_operation(Options const& options, std::string const& id) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const done, follow(connection, options, id));
    return print(operation_table({done.operation}), done.body, options);
}

// Succeeds when it has ended because of this; what it undid may take a while.
Result<void> cancel_operation(Options const& options, std::string const& id) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_CHECK(connection.send({.method = "POST", .path = "/v1/operations/" + id + "/cancel"}));
    if (options.no_wait) return {};
    auto const done = follow(connection, options, id);
    if (done)
        return fail(Problem::conflict, fmt::format("operation {} was past its last step", id),
                    fmt::format("see what it did: vfctl op show {}", id));
    if (done.error().problem != Problem::cancelled) return fail(done.error());
    print_sentence(fmt::format("operation {} was cancelled", id), options);
    return {};
}

}  // namespace

void add_operation_commands(CLI::App& app, Session& session) {
    auto* const op = add_group(app, "op", "show running and finished operations");
    add_command(*op, session, "list", "list the operations of the last 30 days", list_operations);
    Named const id{"OPERATION", "ID of the operation"};
    auto [show, shown, timing] = add_named(
        *op, session, "show", "show one operation with its steps", id, show_operation, false);
    show->add_flag("--timing", timing, "what its time went to");
    add_named(*op, session, "cancel", "cancel a running operation; what it did is undone", id,
              cancel_operation);
    add_named(*op, session, "wait", "wait until an operation has ended", id, wait_for_operation);
}

}  // namespace vfmgr
