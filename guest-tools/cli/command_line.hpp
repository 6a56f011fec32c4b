// SPDX-License-Identifier: Apache-2.0
// The command line, from its definition to its parsing: each command knows what it runs. Created
// once, in main().
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "api/types/enum_names.hpp"
#include "guest-tools/cli/options.hpp"

namespace vfmgr::guest::command {

// Returns vf-guest's exit status.
using Run = std::function<int(Options const&)>;

struct CommandLine {
    CLI::App app{"Configures the VFs attached to this VM and proves RDMA over them"};
    Options options;
    std::string output = "text";
    Run run;  // what the parsed command runs

    CLI::App* add(CLI::App& parent, char const* name, char const* help, Run runs) {
        auto* const command = parent.add_subcommand(name, help);
        // CLI11 calls the innermost command's callback first.
        command->callback([this, runs = std::move(runs)] {
            if (!run) run = runs;
        });
        return command;
    }
    void add_output(CLI::App& command) {
        command.add_option("-o,--output", output, "text or json")
            ->check(CLI::IsMember({"text", "json"}));
    }
};

// Adds an option whose value is an enumerator's name. `value` is of the enum's type, or an optional
// of it.
template <class Value>
CLI::Option* add_choice(CLI::App& command, std::string const& name, Value& value,
                        char const* help) {
    using Enum = typename decltype(std::optional(value))::value_type;
    auto const set = [&value, name](std::string const& text) {
        auto const chosen = enum_value<Enum>(text);
        if (!chosen) throw CLI::ValidationError(name, "must be one of " + enum_choices<Enum>());
        Enum const named = *chosen;
        value = named;
    };
    return command.add_option_function<std::string>(name, set, help);
}

// vf-guest stream: sends paced packets from one machine to another, and counts them there. Both
// commands exit with 0 when every packet arrived, with 1 when some did not or that is unknown.
void add_stream_commands(CommandLine& line);

}  // namespace vfmgr::guest::command
