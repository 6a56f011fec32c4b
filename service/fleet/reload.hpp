// SPDX-License-Identifier: Apache-2.0
// Takes a changed configuration while vfmgr-fleetd runs: certificates, CAs, roles and limits; all
// of it or, if anything in it is wrong, nothing. Main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "service/auth/rules_in_force.hpp"
#include "service/fleet/config.hpp"
#include "service/served_as.hpp"

namespace vfmgr::fleet {

using LoadConfig = std::function<Result<Config>()>;

// Resolves the groups on this host; the hosts come with the certificate. A group that it lacks is
// left out, and returned by name.
struct ResolvedAccess {
    AccessRules rules;
    std::vector<std::string> unknown_groups;
};
[[nodiscard]] ResolvedAccess resolve_access(Config const& config);

// The names by which clients may reach this replica, besides those of its certificate: those of the
// host and of its url.
[[nodiscard]] std::vector<std::string> names_of(Config const& config);

class Reload {
  public:
    // The references outlive it.
    Reload(LoadConfig load, RulesInForce& rules, http::Server& server)
        : load_(std::move(load)), rules_(rules), server_(server) {}
    // What is in force since the start.
    void begin(Config config, std::vector<std::string> unknown_groups, std::string fingerprint);
    void run();
    // Warns of its end. Call it once a day.
    void look_after_certificate(Time now) const;

  private:
    [[nodiscard]] Result<void> apply(Config const& wanted);

    LoadConfig load_;
    RulesInForce& rules_;
    http::Server& server_;
    Config config_;
    std::vector<std::string> unknown_groups_;
    std::string fingerprint_;
};

}  // namespace vfmgr::fleet
