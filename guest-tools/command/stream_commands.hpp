// SPDX-License-Identifier: Apache-2.0
// The command line of vf-guest stream. Created once, in main().
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "guest-tools/command/stream.hpp"

namespace vfmgr::guest::command {

struct StreamCommands {
    CLI::App* stream = nullptr;
    CLI::App* receive = nullptr;
    CLI::App* send = nullptr;

    StreamCommands(CLI::App& app, StreamOptions& options);
    [[nodiscard]] std::optional<int> run(Options const& options) const;
};

}  // namespace vfmgr::guest::command
