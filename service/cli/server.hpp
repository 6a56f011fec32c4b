// SPDX-License-Identifier: Apache-2.0
// Which vfmgrd vfctl talks to, and how the two authenticate. One thread.
#pragma once

#include <functional>
#include <string>

#include "api/types/problem.hpp"
#include "service/cli/contexts.hpp"
#include "service/cli/session.hpp"

namespace vfmgr {

struct Server {
    std::string address;    // unix:PATH or https://HOST[:PORT]
    std::string context{};  // its name; empty: none
    Credentials credentials{};
    bool operator==(Server const&) const = default;
};

[[nodiscard]] bool is_remote(Server const& server);

// The address is that of --host, else of the environment, else of the current context, else the
// default socket. A context brings its credentials along, with its own rank: options override them
// always, the environment overrides those of a context that --host does not name.
[[nodiscard]] Result<Server> server_of(Options const& options);

// The pure part. `contexts` is called only if a context is named, or nothing is.
struct ServerChoice {
    std::string host{};
    Credentials credentials{};
};
[[nodiscard]] Result<Server> choose_server(ServerChoice const& options,
                                           ServerChoice const& environment,
                                           std::function<Result<Contexts>()> const& contexts);

}  // namespace vfmgr
