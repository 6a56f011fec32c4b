// SPDX-License-Identifier: Apache-2.0
// The host's end for rping, ibv_rc_pingpong and perftest in a VM.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "api/types/stock.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/named_command.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

struct OpenArguments {
    std::optional<std::uint32_t> seconds, message_bytes;
    std::string test;
};

std::string path_of(std::string const& id) {
    return "/v1/attachments/" + id + "/stock-clients";
}

Result<std::string> body_of(OpenArguments const& arguments) {
    auto body = json::object();
    if (arguments.seconds) body["seconds"] = *arguments.seconds;
    if (arguments.message_bytes) body["message_bytes"] = *arguments.message_bytes;
    if (!arguments.test.empty()) {
        VFMGR_TRY(auto const test, parse_choice<StockTest>("--test", arguments.test,
                                                           "see vfctl stock-clients open --help"));
        body["test"] = enum_name(test);
    }
    return body.dump();
}

Result<void> print_stock(http::Response const& response, Options const& options) {
    VFMGR_TRY(auto const clients, json_of(response));
    print(stock_table(clients), stock_page(clients), response.body, options);
    return {};
}

Result<void> open_stock(Options const& options, std::string const& name,
                        OpenArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_TRY(auto const body, body_of(arguments));
    VFMGR_TRY(auto const response,
              connection.send({.method = "PUT", .path = path_of(id), .body = body}));
    return print_stock(response, options);
}

Result<void> show_stock(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_TRY(auto const response, connection.send({.path = path_of(id)}));
    return print_stock(response, options);
}

Result<void> close_stock(Options const& options, std::string const& name) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_CHECK(connection.send({.method = "DELETE", .path = path_of(id)}));
    say(fmt::format("stock clients of attachment {} are served no longer", id), options);
    return {};
}

}  // namespace

void add_stock_commands(CLI::App& app, Session& session) {
    auto* const stock =
        app.add_subcommand("stock-clients", "serve rping, ibv_rc_pingpong and perftest in a VM")
            ->fallthrough();
    stock->require_subcommand(1);
    auto const arguments = std::make_shared<OpenArguments>();
    auto* const open = add_named(*stock, session, "open", "serve them for a while",
                                 [arguments](Options const& options, std::string const& name) {
                                     return open_stock(options, name, *arguments);
                                 });
    open->add_option("--seconds", arguments->seconds, "how long; default 600, at most 3600");
    open->add_option("--test", arguments->test,
                     "one_sided (ib_write_bw, ib_read_bw, ib_read_lat; the default), send_sink "
                     "(ib_send_bw), send_echo (ib_send_lat), write_echo (ib_write_lat)");
    open->add_option("--message-bytes", arguments->message_bytes,
                     "the longest message; of write_echo exactly as long");
    add_named(*stock, session, "show", "whether they are served, and how they are called",
              show_stock);
    add_named(*stock, session, "close", "serve them no longer", close_stock);
}

}  // namespace vfmgr
