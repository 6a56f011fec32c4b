// SPDX-License-Identifier: Apache-2.0
// Options that set what a VF has. The arguments outlive the command.
#pragma once

#include <string>

#include "service/cli/attach_spec.hpp"

namespace CLI {
class App;
}

namespace vfmgr {

// Those that a running VM's VF can change.
void add_changeable_settings(CLI::App& command, AttachArguments& arguments);
// All of them.
void add_settings(CLI::App& command, AttachArguments& arguments);
// Where in the VM the VF goes, and what it gets for it.
void add_placing(CLI::App& command, AttachArguments& arguments);
void add_best_effort(CLI::App& command, AttachArguments& arguments);
// The proof that is waited for; `help`: of --verify.
void add_proof(CLI::App& command, AttachArguments& arguments, char const* help);
void add_repeated_proof(CLI::App& command, AttachArguments& arguments);
void add_unset(CLI::App& command, AttachArguments& arguments, std::string const& help);

}  // namespace vfmgr
