// SPDX-License-Identifier: Apache-2.0
// What the fleet's routes and its scheduler are made of. begin() makes it; it outlives them.
#pragma once

#include <string>

#include "api/http/client_pool.hpp"
#include "api/types/time.hpp"
#include "service/fleet/hosts/followers.hpp"
#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/keeper/keeper.hpp"
#include "service/fleet/placement/scheduler.hpp"
#include "service/fleet/registry.hpp"
#include "service/fleet/writer.hpp"

namespace vfmgr::fleet {

// Who this replica is.
struct Self {
    std::string fleet;  // the fleet's UUID, of the replica's certificate
    std::string name;
    std::string url;
    std::string ca;  // PEM
    std::string ca_file;
    std::string ca_sha256;  // of its DER, hex
    Time started_at{};
};

struct Parts {
    Self const& self;
    Registry& registry;
    Writer& writer;
    Inventory& inventory;
    Followers& followers;
    http::ClientPool& pool;
    Clock& clock;
    Scheduler& scheduler;
    Keeper const& keeper;
};

// How long a request waits for etcd.
inline constexpr std::chrono::seconds etcd_patience{15};
[[nodiscard]] inline Deadline etcd_deadline(Parts const& parts) {
    return parts.clock.steady_now() + etcd_patience;
}

}  // namespace vfmgr::fleet
