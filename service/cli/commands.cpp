// SPDX-License-Identifier: Apache-2.0
#include "service/cli/commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "api/types/exit.hpp"
#include "api/types/text.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/complete.hpp"
#include "service/cli/session.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {
namespace {

std::string exit_codes() {
    std::string lines = "Exit codes (of doctor: 0 ready, 1 warnings, 2 failures):\n";
    for (auto const& [code, meaning] : exit_meanings)
        lines += fmt::format("  {:<4} {}\n", static_cast<int>(code), meaning);
    return lines;
}

void print_problem(Error const& error) {
    std::string out = fmt::format("vfctl: {}\n", printable(error.detail));
    for (auto const& violation : error.violations)
        out += fmt::format("  {} {}\n", printable(violation.pointer), printable(violation.detail));
    for (auto const& cause : error.causes)
        out += fmt::format("  because: {}: {}{}{}\n", printable(cause.call), printable(cause.code),
                           cause.code.empty() ? "" : ": ", printable(cause.text));
    if (!error.remedy.empty()) out += fmt::format("remedy: {}\n", printable(error.remedy));
    std::fputs(out.c_str(), stderr);
}

// Output that could not be written counts as a failure.
int ended_with(Result<int> done) {
    auto const written = flush_output();
    if (done && !written) done = fail(written.error());
    if (done) return *done;
    print_problem(done.error());
    return exit_code(done.error().problem);
}

// Splits "id,vm" at its commas.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (auto const word = take_until(text, ',')) words.emplace_back(*word);
    words.emplace_back(text);
    return words;
}

Result<void> check_output(Options const& options) {
    bool const has_columns = options.format == Format::table || options.format == Format::csv;
    if (has_columns || options.columns.empty()) return {};
    return fail(Problem::invalid_request,
                fmt::format("-c chooses columns of tables and CSV, but the format is {}",
                            enum_name(options.format)),
                "leave -c out, or use -o csv");
}

Result<int> run(Session const& session) {
    VFMGR_CHECK(check_output(session.options));
    return session.run();
}

}  // namespace

Result<void> refuse_dry_run(Options const& options) {
    if (!options.dry_run) return {};
    return fail(Problem::invalid_request, "this command has no dry run",
                "leave out --dry-run to run it");
}

void add_global_options(CLI::App& app, Session& session) {
    auto& options = session.options;
    app.add_option("--host,--url,--socket", options.host,
                   "a context's name, unix:PATH or https://HOST:PORT (environment: VFMGR_HOST; "
                   "default: the current context, or this host)")
        ->type_name("HOST");
    app.add_option("--token-file", options.credentials.token_file,
                   "file with the token, for https (environment: VFMGR_TOKEN_FILE)")
        ->type_name("FILE");
    app.add_option("--ca-file", options.credentials.ca_file,
                   "PEM file with the CA of the server's certificate (environment: VFMGR_CA_FILE)")
        ->type_name("FILE");
    app.add_option("--fingerprint", options.credentials.fingerprint,
                   "SHA-256 fingerprint that the server's certificate must have (environment: "
                   "VFMGR_FINGERPRINT)")
        ->type_name("SHA256");
    app.add_option("--client-certificate", options.credentials.client_certificate,
                   "PEM file with a client certificate, in place of a token (environment: "
                   "VFMGR_CLIENT_CERTIFICATE)")
        ->type_name("FILE");
    app.add_option("--client-key", options.credentials.client_key,
                   "PEM file with the key of that certificate (environment: VFMGR_CLIENT_KEY)")
        ->type_name("FILE");
    app.add_option_function<std::string>(
           "-o,--output",
           [&options](std::string const& text) {
               options.format = enum_value<Format>(text).value_or(Format::table);
           },
           "output format; json is the API's own answer, yaml the same, name what other commands "
           "accept")
        ->type_name("FORMAT")
        ->check(one_of<Format>());
    app.add_flag_callback(
        "-j,--json", [&options] { options.format = Format::json; }, "same as -o json");
    app.add_option_function<std::string>(
           "-c,--columns",
           [&options](std::string const& text) { options.columns = words_of(text); },
           "print only these columns of the table or CSV, separated by commas")
        ->type_name("COLUMNS");
    app.add_flag("--no-headers", options.no_headers, "omit the header line of tables and CSV");
    app.add_flag("--dry-run", options.dry_run,
                 "show what would change and what it affects; change nothing");
    app.add_flag("--no-wait", options.no_wait,
                 "print the operation's ID and exit without waiting for it");
    app.add_flag("-q,--quiet", options.quiet, "print no progress and no messages except errors");
}

// In the order of help. What is used most comes first: add_until() adds no more than it needs.
constexpr std::array groups{
    add_attachment_commands,  add_vf_commands,        add_pf_commands,
    add_vm_commands,          add_operation_commands, add_events_command,
    add_top_command,          add_network_commands,   add_pool_commands,
    add_reservation_commands, add_identity_commands,  add_desired_commands,
    add_query_commands,       add_drained_command,    add_doctor_commands,
    add_topology_command,     add_firmware_commands,  add_rdma_commands,
    add_ib_commands,          add_interop_commands,   add_tenant_commands,
    add_token_commands,       add_context_commands,   add_audit_command,
    add_fleet_commands,       add_store_commands,     add_fleet_host_commands,
};

void add_until(CLI::App& app, Session& session, std::string const& command) {
    app.footer(exit_codes());
    app.require_subcommand(1);
    app.set_version_flag("--version", "vfctl " VFMGR_VERSION);
    add_global_options(app, session);
    for (auto const add : groups) {
        add(app, session);
        auto const has_name = [&](CLI::App* one) { return one->check_name(command); };
        if (!command.empty() && !app.get_subcommands(has_name).empty()) return;
    }
}

void add_all(CLI::App& app, Session& session) {
    add_until(app, session, {});
}

int run_vfctl(std::vector<std::string> arguments) {
    Session session;
    CLI::App app("Attaches SR-IOV virtual functions to virtual machines.", "vfctl");
    bool const names_command = !arguments.empty() && !arguments.front().starts_with('-');
    add_until(app, session, names_command ? arguments.front() : std::string());
    // Not a command of the tree: its words are no options of its own.
    if (!arguments.empty() && arguments.front() == "__complete")
        return complete(app, session, {arguments.begin() + 1, arguments.end()});
    try {
        std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector in reverse
        app.parse(std::move(arguments));
        return ended_with(run(session));
    } catch (CLI::ParseError const& error) {
        if (app.exit(error, std::cout, std::cerr) != 0) return static_cast<int>(Exit::usage);
        std::cout.flush();
        return ended_with(static_cast<int>(Exit::done));
    } catch (std::exception const& bug) {
        print_problem({Problem::internal,
                       fmt::format("the server's answer is not what was expected: {}", bug.what()),
                       "check that vfctl and vfmgrd have the same version"});
        return exit_code(Problem::internal);
    }
}

}  // namespace vfmgr
