// SPDX-License-Identifier: Apache-2.0
// Pools and reservations. They change nothing on the host, so their plans have no steps.
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t pools_max = 256;

}  // namespace

Result<Plan> plan_pool(DesiredState const& desired, Pool const& pool) {
    if (!desired.pools.contains(pool.name) && desired.pools.size() >= pools_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("this host has {} pools already", pools_max),
                    "remove one that nothing uses: vfctl pool list");
    auto const& network = pool.defaults.network;
    if (network && !find_network(desired.networks, *network))
        return fail(Problem::not_found,
                    fmt::format("there is no network {}, which pool {} has as its default",
                                *network, pool.name),
                    fmt::format("make it first: vfctl network set {} --prefix PREFIX", *network));
    return Plan{};
}

Result<Plan> plan_pool_removal(DesiredState const& desired, std::string const& name) {
    if (!desired.pools.contains(name))
        return fail(Problem::not_found, fmt::format("there is no pool {}", name),
                    "vfctl pool list shows those of this host");
    for (auto const& [reserved, reservation] : desired.reservations)
        if (reservation.spec.pool == name)
            return fail(Problem::conflict,
                        fmt::format("pool {} is used by reservation {}", name, reserved),
                        fmt::format("release it first: vfctl reservation release {}", reserved));
    return Plan{};
}

}  // namespace vfmgr
