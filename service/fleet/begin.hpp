// SPDX-License-Identifier: Apache-2.0
// Begins what the fleet's API answers from.
#pragma once

#include <functional>
#include <memory>

#include "service/fleet/config.hpp"
#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/run.hpp"

namespace vfmgr::fleet {

// Makes the client of etcd; tests have another.
using MakeEtcd = std::function<Result<std::unique_ptr<Etcd>>(EtcdSettings const& settings)>;

// Returns at once. While nothing has come from etcd there are no tokens and no tenants, and the
// replica is not ready: "etcd". Users of the unix socket, and clients with a certificate, have
// their roles from the configuration.
[[nodiscard]] Result<FleetSeams> begin(Config const& config, Front const& front,
                                       MakeEtcd const& make_etcd, Clock& clock);

}  // namespace vfmgr::fleet
