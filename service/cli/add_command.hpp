// SPDX-License-Identifier: Apache-2.0
// Commands, each with the function that runs it. `session` outlives the tree.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "service/cli/session.hpp"

namespace vfmgr {

// Runs `run(options, arguments...)` if the user chose the command.
template <class Run, class... Arguments>
void on_chosen(CLI::App& command, Session& session, Run run,
               std::shared_ptr<Arguments>... arguments) {
    command.callback([&session, run, arguments...] {
        session.run = [&session, run, arguments...] { return run(session.options, *arguments...); };
    });
}

template <class Run>
CLI::App* add_command(CLI::App& parent, Session& session, std::string const& verb,
                      std::string const& help, Run run) {
    auto* const command = parent.add_subcommand(verb, help)->fallthrough();
    on_chosen(*command, session, run);
    return command;
}

struct Named {
    std::string name;  // of the argument: "PF"
    std::string help;
};
inline Named const attachment_or_vm{"ID", "ID of the attachment, or the VM that has it"};
inline Named const pf_by_any_name{"PF", "PCI address or netdev"};

// A command whose only argument names what it is about.
template <class Run>
CLI::App* add_named(CLI::App& parent, Session& session, std::string const& verb,
                    std::string const& help, Named const& named, Run run) {
    auto* const command = parent.add_subcommand(verb, help)->fallthrough();
    auto const text = std::make_shared<std::string>();
    command->add_option(named.name, *text, named.help)->required();
    on_chosen(*command, session, run, text);
    return command;
}

// A command that only has others under it.
inline CLI::App* add_group(CLI::App& parent, std::string const& noun, std::string const& help) {
    return parent.add_subcommand(noun, help)->fallthrough()->require_subcommand(1);
}

}  // namespace vfmgr
