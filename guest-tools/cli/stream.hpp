// SPDX-License-Identifier: Apache-2.0
// vf-guest stream: sends paced packets from one machine to another, and counts them there. Blocks;
// the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "guest-tools/cli/options.hpp"

namespace vfmgr::guest::command {

// Return vf-guest's exit status: 0 when every packet arrived, 1 when some did not or that is
// unknown.
[[nodiscard]] int receive_stream(Options const& options);
[[nodiscard]] int send_stream(Options const& options);

// The command line of vf-guest stream. Created once, in main().

struct StreamCommands {
    CLI::App* stream = nullptr;
    CLI::App* receive = nullptr;
    CLI::App* send = nullptr;

    StreamCommands(CLI::App& app, StreamOptions& options);
    [[nodiscard]] std::optional<int> run(Options const& options) const;
};

}  // namespace vfmgr::guest::command
