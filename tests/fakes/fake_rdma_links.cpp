// SPDX-License-Identifier: Apache-2.0
// Effects of steps on software RDMA links: what nldev.c, rxe and siw accept and refuse.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "tests/fakes/effects.hpp"
#include "vfmgr/plan/rdma_links.hpp"

namespace vfmgr {

Result<Observed> FakeKernel::Effects::operator()(AddSoftRdmaLink const& step) const {
    auto const& [name, type, on] = step.link;
    auto const call = fmt::format("RDMA_NLDEV_CMD_NEWLINK {} on {}", enum_name(type), on);
    auto const detail = fmt::format("a {} device could not be created on {}", enum_name(type), on);
    if (!host.network) return refused(detail, call, EOPNOTSUPP);
    auto& network = *host.network;
    auto const there = network.rdma.find(name);
    if (there != network.rdma.end() && there->second.type == type && there->second.ifname == on)
        return Observed{};
    if (there != network.rdma.end()) return refused(detail, call, ENFILE);
    auto const module = type == SoftRdmaType::rxe ? network.rxe_module : network.siw_module;
    if (module == false) return refused(detail, call, EINVAL);
    auto const netdev = network.netdevs.find(on);
    if (netdev == network.netdevs.end()) return refused(detail, call, ENODEV);
    if (netdev->second.parent && type == SoftRdmaType::rxe) return refused(detail, call, EPERM);
    for (auto const& [other, seen] : network.rdma)
        if (seen.type == type && seen.ifname == on) return refused(detail, call, EEXIST);
    ObservedRdmaLink made;
    made.type = type;
    made.ifname = on;
    made.active = netdev->second.up;
    network.rdma[name] = std::move(made);
    for (auto& [pci, pf] : host.pfs) {
        if (pf.info.ifname != on || pf.info.rdma_device) continue;
        pf.info.rdma_device = name;
        pf.info.rdma_driver = enum_name(type);
    }
    return Observed{{rdma_link_advice(step.link)}};
}

// The kernel checks no users and waits until the last process has closed it: the worker checks.
Result<Observed> FakeKernel::Effects::operator()(RemoveSoftRdmaLink const& step) const {
    if (!host.network) return Observed{};
    auto const there = host.network->rdma.find(step.name);
    if (there == host.network->rdma.end()) return Observed{};
    auto const& seen = there->second;
    if (!seen.type)
        return refused(fmt::format("{} is not a software link", step.name),
                       "RDMA_NLDEV_CMD_DELLINK " + step.name, EINVAL);
    bool const by_process =
        std::ranges::any_of(seen.users, [](RdmaUser const& user) { return user.pid.has_value(); });
    if (by_process || (!step.force && (!seen.users.empty() || seen.users_unknown)))
        return fail(Problem::link_in_use, fmt::format("RDMA link {} is in use", step.name),
                    "stop who uses it");
    host.network->rdma.erase(there);
    for (auto& [pci, pf] : host.pfs) {
        if (pf.info.rdma_device != step.name) continue;
        pf.info.rdma_device.reset();
        pf.info.rdma_driver.reset();
    }
    return Observed{};
}

}  // namespace vfmgr
