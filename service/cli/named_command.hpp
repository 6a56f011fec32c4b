// SPDX-License-Identifier: Apache-2.0
// Commands whose only argument is an attachment or the VM that has it. `session` outlives the tree.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "service/cli/session.hpp"

namespace vfmgr {

template <class Run>
CLI::App* add_named(CLI::App& parent, Session& session, std::string const& verb,
                    std::string const& help, Run run) {
    auto* const command = parent.add_subcommand(verb, help)->fallthrough();
    auto const name = std::make_shared<std::string>();
    command->add_option("ID", *name, "ID of the attachment, or the VM that has it")->required();
    command->callback([&session, name, run] {
        session.run = [&session, name, run] { return run(session.options, *name); };
    });
    return command;
}

}  // namespace vfmgr
