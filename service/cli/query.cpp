// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/http/uri.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds query_seconds_max{120};  // longer than the longest long poll

struct QueryArguments {
    std::string method;
    std::string path;
    std::string body;
    std::vector<std::string> headers;
};

Result<std::map<std::string, std::string>> headers_of(std::vector<std::string> const& lines) {
    std::map<std::string, std::string> headers;
    for (auto const& line : lines) {
        auto const colon = line.find(':');
        if (colon == std::string::npos)
            return fail(Problem::invalid_request,
                        fmt::format("'{}' is not of the form Name: value", line),
                        "give a header such as --header 'If-Match: \"3\"'");
        auto const value = line.find_first_not_of(' ', colon + 1);
        headers[http::lower_case(line.substr(0, colon))] =
            value == std::string::npos ? "" : line.substr(value);
    }
    return headers;
}

// Writes the body to standard output whatever the status: this is the API without vfctl's views.
Result<void> query(Options const& options, QueryArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto target, http::parse_target(arguments.path));
    ApiRequest request{.method = arguments.method,
                       .path = std::move(target.path),
                       .query = std::move(target.query),
                       .body = arguments.body,
                       .timeout = query_seconds_max};
    VFMGR_TRY(request.headers, headers_of(arguments.headers));
    if (options.dry_run) request.query["dry_run"] = "true";
    if (arguments.body == "-") {
        VFMGR_TRY(request.body, read_text("-"));
    }
    VFMGR_TRY(auto const response, connection.exchange(request));
    bool const is_json = response.content_type.find("json") != std::string::npos;
    write_out(response.body, is_json ? Shown::json : Shown::text);
    if (response.status >= 400) return fail(problem_of(response));
    return {};
}

Result<void> version(Options const& options) {
    Table table{{"PROGRAM", "VERSION"}, {{"vfctl", VFMGR_VERSION}}};
    auto const connection = Connection::open(options);
    auto const about = connection ? get<About>(*connection, "/v1") : fail(connection.error());
    if (about)
        table.rows.push_back({"vfmgrd", cell(about->version)});
    else
        print_sentence("vfmgrd: " + about.error().detail, options);
    std::string page;
    auto versions = nlohmann::json::object();
    for (auto const& row : table.rows) {
        page += row[0] + " " + row[1] + "\n";
        versions[row[0]] = row[1];
    }
    return print(table, page, versions.dump(), options);
}

}  // namespace

void add_query_commands(CLI::App& app, Session& session) {
    auto const [command, arguments] =
        add_command(app, session, "query", "send one request to the API and print its answer",
                    query, QueryArguments{});
    command->add_option("METHOD", arguments.method, "GET, PUT, POST, PATCH or DELETE")->required();
    command->add_option("PATH", arguments.path, "path, such as /v1/pfs")->required();
    command->add_option("BODY", arguments.body, "JSON; - for standard input");
    command->add_option("--header", arguments.headers, "Name: value")->expected(1)->take_all();
    add_command(app, session, "version", "show the versions of vfctl and of the daemon", version);
}

}  // namespace vfmgr
