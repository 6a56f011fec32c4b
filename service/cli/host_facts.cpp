// SPDX-License-Identifier: Apache-2.0
#include "service/cli/host_facts.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "service/cli/connection.hpp"
#include "service/cli/rdma_link.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/collect.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds collect_time_max{60};

}  // namespace

void add_source_options(CLI::App& command, FactsSource& source) {
    auto* const from =
        command.add_option("--from", source.from, "read this support bundle instead of the host")
            ->type_name("FILE");
    command.add_flag("--local", source.local, "read the host directly, without the daemon")
        ->excludes(from);
}

Result<checks::Facts> facts_of(FactsSource const& source) {
    if (source.from.empty()) return checks::collect({CheckedMachine::host, {}, links_of_daemon});
    VFMGR_TRY(auto const text, read_text(source.from));
    return checks::from_bundle(text);
}

Result<http::Response> ask_host(Options const& options, std::string const& path) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return connection.send({.path = path, .timeout = collect_time_max});
}

Result<http::Response> ask_host_list(Options const& options, std::string const& path) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return connection.list({.path = path, .timeout = collect_time_max});
}

bool may_collect_here(Options const& options, Error const& error) {
    bool const no_answer =
        error.problem == Problem::unavailable || error.problem == Problem::forbidden;
    auto const server = server_of(options);
    if (!no_answer || !server || is_remote(*server)) return false;
    print_sentence(fmt::format("vfctl reads the host itself: {}", error.detail), options);
    return true;
}

}  // namespace vfmgr
