// SPDX-License-Identifier: Apache-2.0
// Where vfctl gets to know a host from: the daemon, its own eyes, or a bundle. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "service/cli/session.hpp"
#include "vfmgr/checks/facts.hpp"

namespace vfmgr {

struct FactsSource {
    std::string from;  // a bundle; empty: a host
    bool local = false;
};
void add_source_options(CLI::App& command, FactsSource& source);

// Of the bundle, or else of this host as this process may see it.
[[nodiscard]] Result<checks::Facts> facts_of(FactsSource const& source);
// A document of the daemon's that takes it a look at its host.
[[nodiscard]] Result<nlohmann::json> ask_host(Options const& options, std::string const& path);
// The daemon sees more. That it is down, or not for this user, is no reason to say nothing; then
// this says on standard error that vfctl looks itself.
[[nodiscard]] bool may_look_itself(Options const& options, Error const& error);

}  // namespace vfmgr
