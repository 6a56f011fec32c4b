// SPDX-License-Identifier: Apache-2.0
// The rules that callers are judged by, which a reload replaces as a whole. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "service/auth/authenticate.hpp"
#include "service/rate_limit.hpp"

namespace vfmgr {

struct AccessRules {
    RoleRules roles;
    RateLimit changes;            // for each principal
    std::set<std::string> hosts;  // by which clients reach the API over TLS; see origin.hpp
    RateLimit fleet_changes{};    // for each replica of the fleet: what it does for itself
};

class RulesInForce {
  public:
    explicit RulesInForce(AccessRules rules) { set(std::move(rules)); }
    // A caller keeps what it took.
    [[nodiscard]] std::shared_ptr<AccessRules const> get() const {
        std::lock_guard const lock(mutex_);
        return rules_;
    }
    void set(AccessRules rules) {
        auto next = std::make_shared<AccessRules const>(std::move(rules));
        std::lock_guard const lock(mutex_);
        rules_ = std::move(next);
    }

  private:
    mutable std::mutex mutex_;
    std::shared_ptr<AccessRules const> rules_;
};

}  // namespace vfmgr
