// SPDX-License-Identifier: Apache-2.0
// The host's end for rping, ibv_rc_pingpong and perftest in a VM.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/rdma.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
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
    return "/v1/attachments/" + id + "/interop";
}

Result<std::string> body_of(OpenArguments const& arguments) {
    auto body = json::object();
    if (arguments.seconds) body["seconds"] = *arguments.seconds;
    if (arguments.message_bytes) body["message_bytes"] = *arguments.message_bytes;
    if (!arguments.test.empty()) {
        VFMGR_TRY(auto const test, parse_choice<InteropTest>("--test", arguments.test,
                                                             "see vfctl interop open --help"));
        body["test"] = enum_name(test);
    }
    return body.dump();
}

Result<void> open_interop(Options const& options, std::string const& name,
                          OpenArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(with_columns(interop_table({}), options.columns));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_TRY(auto const body, body_of(arguments));
    VFMGR_TRY(auto const response,
              connection.send({.method = "PUT", .path = path_of(id), .body = body}));
    return print_answer<InteropWindow>(response, options, interop_table, interop_page);
}

Result<void> show_interop(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_TRY(auto const response, connection.send({.path = path_of(id)}));
    return print_answer<InteropWindow>(response, options, interop_table, interop_page);
}

Result<void> close_interop(Options const& options, std::string const& name) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    VFMGR_CHECK(connection.send({.method = "DELETE", .path = path_of(id)}));
    print_sentence(fmt::format("interop clients of attachment {} are no longer served", id),
                   options);
    return {};
}

}  // namespace

void add_interop_commands(CLI::App& app, Session& session) {
    auto* const interop =
        add_group(app, "interop", "serve rping, ibv_rc_pingpong and perftest for a VM");
    auto const [open, id, arguments] =
        add_named(*interop, session, "open", "serve them for a limited time", attachment_or_vm,
                  open_interop, OpenArguments{});
    open->add_option("--seconds", arguments.seconds,
                     "how long to serve them, at most 3600 (default: 600)");
    open->add_option("--test", arguments.test,
                     "one_sided (ib_write_bw, ib_read_bw, ib_read_lat; the default), send "
                     "(ib_send_bw), send_echo (ib_send_lat), write_echo (ib_write_lat)")
        ->check(one_of<InteropTest>());
    open->add_option("--message-bytes", arguments.message_bytes,
                     "length of the longest message; for write_echo, of each message");
    add_named(*interop, session, "show",
              "show whether they are served, and the commands to run in the VM", attachment_or_vm,
              show_interop);
    add_named(*interop, session, "close", "stop serving them", attachment_or_vm, close_interop);
}

}  // namespace vfmgr
