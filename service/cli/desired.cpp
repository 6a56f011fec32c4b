// SPDX-License-Identifier: Apache-2.0
// The whole desired state as a file: export, diff, apply.
#include <fmt/format.h>

#include "api/types/desired.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto desired_path = "/v1/desired";

struct FileArguments {
    std::string file;
    bool prune = false;
};

// YAML is for people; a table would not be accepted back.
Result<void> export_desired(Options options) {
    if (options.format == Format::csv || options.format == Format::name || !options.columns.empty())
        return fail(Problem::invalid_request, "the desired state is a document, not a table",
                    "choose -o yaml, which is the default, or -o json");
    if (options.format == Format::table) options.format = Format::yaml;
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response, connection.send({.path = desired_path}));
    return print_document(response, options);
}

Result<ApiRequest> request_of(FileArguments const& arguments) {
    VFMGR_TRY(auto body, read_document(arguments.file));
    ApiRequest request{.method = "PUT", .path = desired_path, .body = std::move(body)};
    if (arguments.prune) request.query["prune"] = "true";
    return request;
}

Table change_table(std::vector<DesiredChange> const& changes) {
    Table table{{"CHANGE", "NOW", "THEN"}, {}};
    for (auto const& change : changes)
        table.rows.push_back({change.pointer, change.now, change.then});
    return table;
}

std::vector<std::string> sentences_of(std::vector<DesiredChange> const& changes) {
    std::vector<std::string> sentences;
    for (auto const& change : changes) sentences.push_back(change.sentence);
    return sentences;
}

Result<DesiredDryRun> plan(Options const& options, FileArguments const& arguments) {
    VFMGR_CHECK(with_columns(change_table({}), options.columns));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto request, request_of(arguments));
    request.query["dry_run"] = "true";
    VFMGR_TRY(auto const response, connection.send(request));
    VFMGR_TRY(auto planned, value_of<DesiredDryRun>(response));
    auto page = bullets("changes", sentences_of(planned.changes));
    if (!planned.plan.steps.empty() || !planned.plan.notes.empty()) page += plan_page(planned.plan);
    if (page.empty()) page = "nothing changes\n";
    VFMGR_CHECK(print(change_table(planned.changes), page, response.body, options));
    return planned;
}

Result<int> diff(Options const& options, FileArguments const& arguments) {
    VFMGR_TRY(auto const planned, plan(options, arguments));
    bool const differs = !planned.changes.empty() || !planned.plan.steps.empty();
    return static_cast<int>(differs ? Exit::differs : Exit::done);
}

Result<void> apply(Options const& options, FileArguments const& arguments) {
    if (options.dry_run) {
        VFMGR_CHECK(plan(options, arguments));
        return {};
    }
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const request, request_of(arguments));
    return change_and_report(connection, options, request, "the host is as the file says");
}

void add_file(CLI::App& command, FileArguments& arguments) {
    command.add_option("-f,--file", arguments.file, "YAML or JSON; - for standard input")
        ->type_name("FILE")
        ->required();
    command.add_flag("--prune", arguments.prune,
                     "remove what the file does not name; it is kept otherwise");
}

}  // namespace

void add_desired_commands(CLI::App& app, Session& session) {
    add_command(app, session, "export",
                "print what this host is configured to have, as a file for apply", export_desired);
    auto const [diff_command, compared] =
        add_command(app, session, "diff", "show what apply would change", diff, FileArguments{});
    add_file(*diff_command, compared);
    auto const [apply_command, applied] = add_command(
        app, session, "apply", "make PFs, networks, pools, RDMA links and identities as in a file",
        apply, FileArguments{});
    add_file(*apply_command, applied);
}

}  // namespace vfmgr
