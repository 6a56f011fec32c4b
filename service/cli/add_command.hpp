// SPDX-License-Identifier: Apache-2.0
// Commands, each with the function that runs it. `session` outlives the tree.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "api/types/exit.hpp"
#include "service/cli/session.hpp"

namespace vfmgr {

// Adds a command that runs `run(options, arguments...)` if the user chooses it; an exit code that
// it returns is vfctl's. Returns it with its arguments, which hold the values of absent options
// until the command line is parsed.
template <class Run, class... Arguments>
std::tuple<CLI::App*, Arguments&...> add_command(CLI::App& parent, Session& session,
                                                 std::string const& verb, std::string const& help,
                                                 Run run, Arguments... absent) {
    auto* const command = parent.add_subcommand(verb, help)->fallthrough();
    auto const all = std::make_shared<std::tuple<Arguments...>>(std::move(absent)...);
    command->callback([&session, run, all] {
        session.run = [&session, run, all] {
            auto done = std::apply(
                [&](auto const&... each) { return run(session.options, each...); }, *all);
            if constexpr (std::is_same_v<decltype(done), Result<int>>)
                return done;
            else
                return done.map([] { return static_cast<int>(Exit::done); });
        };
    });
    return std::apply(
        [&](auto&... each) { return std::tuple<CLI::App*, Arguments&...>(command, each...); },
        *all);
}

struct Named {
    std::string name;  // of the argument: "PF"
    std::string help;
};
inline Named const attachment_or_vm{"ATTACHMENT",
                                    "ID of the attachment, its VF, or the VM that has it"};
inline Named const pf_by_any_name{"PF", "PCI address or netdev"};

// The same for a command whose first argument names the object that it works on.
template <class Run, class... More>
std::tuple<CLI::App*, std::string&, More&...> add_named(CLI::App& parent, Session& session,
                                                        std::string const& verb,
                                                        std::string const& help, Named const& named,
                                                        Run run, More... absent) {
    auto added = add_command(parent, session, verb, help, run, std::string(), std::move(absent)...);
    std::get<0>(added)->add_option(named.name, std::get<1>(added), named.help)->required();
    return added;
}

// Adds a command that only groups others.
inline CLI::App* add_group(CLI::App& parent, std::string const& noun, std::string const& help) {
    return parent.add_subcommand(noun, help)->fallthrough()->require_subcommand(1);
}

}  // namespace vfmgr
