// SPDX-License-Identifier: Apache-2.0
// Completes command lines for bash, zsh and fish: the scripts in deploy/completion run
// `vfctl __complete WORD...`, where the last word is the one to complete. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "service/cli/session.hpp"

namespace CLI {
class Option;
}

namespace vfmgr {

// What the last word of a command line is.
struct Place {
    CLI::App const* command = nullptr;
    CLI::Option const* valued = nullptr;  // the option or argument whose value it is, if any
    bool is_option = false;               // it begins with '-'
    std::size_t arguments = 0;            // of the command, before it
    std::string before{};                 // "--output=", in the same word
    std::string word{};                   // the text to complete
    std::map<CLI::Option const*, std::string> given{};  // options before it
};
[[nodiscard]] Place place_of(CLI::App const& app, std::vector<std::string> const& words);

// Prints a completion in each line, with a tab and its description if it has one; or ":files", for
// the name of a file. Prints nothing on standard error: without a daemon there are fewer
// completions.
[[nodiscard]] int complete(CLI::App const& app, Session& session,
                           std::vector<std::string> const& words);

}  // namespace vfmgr
