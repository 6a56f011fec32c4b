// SPDX-License-Identifier: Apache-2.0
// Where vfctl gets facts about a host: the daemon, its own reads, or a bundle. One thread.
#pragma once

#include <string>

#include "service/cli/connection.hpp"
#include "service/cli/session.hpp"
#include "vfmgr/machine/facts.hpp"

namespace vfmgr {

struct FactsSource {
    std::string from;  // a bundle; empty: a host
    bool local = false;
};
void add_source_options(CLI::App& command, FactsSource& source);

// Reads the bundle's facts, or else this host's, as far as this process may read them.
[[nodiscard]] Result<checks::Facts> facts_of(FactsSource const& source);
// Gets a document for which the daemon has to read its host.
[[nodiscard]] Result<http::Response> ask_host(Options const& options, std::string const& path);
[[nodiscard]] Result<http::Response> ask_host_list(Options const& options, std::string const& path);
// True if this host's daemon is down or refuses this user: vfctl then reads the host itself, though
// the daemon has more access. Says so on standard error.
[[nodiscard]] bool may_collect_here(Options const& options, Error const& error);

}  // namespace vfmgr
