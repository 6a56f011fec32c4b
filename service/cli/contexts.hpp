// SPDX-License-Identifier: Apache-2.0
// Hosts by name, from files. No secrets: a context names the file of its token. One thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"
#include "service/cli/session.hpp"

namespace vfmgr {

inline constexpr auto local_address = "unix:/run/vfmgr/vfmgr.sock";
inline constexpr auto local_context = "local";  // always there: the default socket
// The replica of vfmgr-fleetd on this machine, unless a file has a context of this name.
inline constexpr auto fleet_context = "fleet";
inline constexpr auto fleet_address = "unix:/run/vfmgr-fleetd/fleetd.sock";

struct Context {
    std::string address;  // unix:PATH or https://HOST[:PORT]
    Credentials credentials{};
    std::string file{};  // that has it; empty: built in
    bool operator==(Context const&) const = default;
};

struct Contexts {
    std::map<std::string, Context> by_name{{local_context, {local_address}}};
    std::string current{};  // empty: none is chosen
    bool operator==(Contexts const&) const = default;
};

struct ContextFiles {
    std::string user;  // empty: this user has no home
    std::string system = "/etc/vfmgr/contexts.toml";
};
// Follows $XDG_CONFIG_HOME and $HOME. Neither is set in units of systemd, which so get no context
// that an admin chose for himself.
[[nodiscard]] ContextFiles context_files();

// Files that do not exist are empty. The user's context replaces the system's of the same name, and
// only the user's file chooses the current one.
[[nodiscard]] Result<Contexts> read_contexts(ContextFiles const& files);
// Adds those of a file; what is there already stays.
[[nodiscard]] Result<void> add_contexts(Contexts& contexts, std::string const& file,
                                        std::string_view text);
// Fails with the names that there are.
[[nodiscard]] Result<Context> find_context(Contexts const& contexts, std::string const& name);

// Returns the file's text with another current context; the rest of it stays as it is.
[[nodiscard]] Result<std::string> with_current(std::string_view text, std::string const& name);
// Makes a known context the current one, in the user's file.
[[nodiscard]] Result<void> use_context(ContextFiles const& files, std::string const& name);

// Accepts unix:PATH, a PATH that begins with '/', and https://HOST[:PORT]; returns the first for
// the second. Text without ':' and '/' can only be a context's name.
[[nodiscard]] Result<std::string> parse_address(std::string const& text);
[[nodiscard]] bool is_context_name(std::string_view text);

}  // namespace vfmgr
