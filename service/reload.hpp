// SPDX-License-Identifier: Apache-2.0
// Takes a changed configuration while the daemon runs: certificates, key, client CAs, revocation
// lists, roles and limits; all of it or, if anything in it is wrong, nothing. Logs what changed and
// what only a restart applies. Main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "service/auth/rules_in_force.hpp"
#include "service/config.hpp"
#include "service/event_streams.hpp"
#include "service/fleet_access.hpp"

namespace vfmgr {

using LoadConfig = std::function<Result<Config>()>;

// Resolves the groups on this host; the hosts come with the certificate. A group that it lacks is
// left out, and returned by name.
struct ResolvedAccess {
    AccessRules rules;
    std::vector<std::string> unknown_groups;
};
[[nodiscard]] ResolvedAccess resolve_access(Config const& config);

// What a reload reads and changes. It outlives the Reload.
struct Reloaded {
    LoadConfig load;
    std::function<std::vector<std::string>()> names;  // of this host, for its own certificate
    RulesInForce& rules;
    http::Server& server;
    EventStreams streams;
    FleetAccess& fleet;
    Clock const& clock;
};

// What is in force.
struct Running {
    Config config;
    std::vector<std::string> unknown_groups;
    std::string fingerprint;  // of the TLS certificate; empty without TLS
};

class Reload {
  public:
    Reload(Reloaded reloaded, Running running)
        : reloaded_(std::move(reloaded)), running_(std::move(running)) {}
    void run();
    // Renews the daemon's own certificate before it ends, and warns of the end of an operator's.
    // Call it once a day.
    void look_after_certificate();

  private:
    [[nodiscard]] Result<void> apply(Config const& wanted);
    [[nodiscard]] Result<std::set<std::string>> serve_tls(Config const& wanted);  // the hosts

    Reloaded reloaded_;
    Running running_;
};

}  // namespace vfmgr
