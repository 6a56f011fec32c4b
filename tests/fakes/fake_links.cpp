// SPDX-License-Identifier: Apache-2.0
// What steps do to the host's legs: link state and MTU, VLAN devices, addresses, peers, SoftRoCE.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "tests/fakes/effects.hpp"

namespace vfmgr {

namespace {

constexpr std::uint32_t mtu_max = 9216;

IpPrefix own_prefix(IpAddress const& address) {
    return {address, static_cast<std::uint8_t>(address.bits())};
}

bool contains(LegState const& leg, IpAddress const& address) {
    return std::ranges::find(leg.addresses, address) != leg.addresses.end();
}

// The PF's netdev is its untagged leg: info says the same.
void mirror(PfState& pf, LegState const& leg) {
    if (leg.id.vlan) return;
    pf.info.up = leg.up;
    pf.info.mtu = leg.mtu;
}

}  // namespace

Result<LegState*> FakeKernel::Effects::leg(LegId const& id) const {
    VFMGR_TRY(auto* const owner, pf(id.pf));
    auto const found = std::ranges::find(owner->legs, id, &LegState::id);
    if (found != owner->legs.end()) return &*found;
    return refused(fmt::format("there is no netdev {}", to_string(id)), "if_nametoindex", ENODEV);
}

// Linux flushes a device's routes and neighbours when it goes down or away.
void FakeKernel::Effects::drop_routes(LegState& leg) const {
    leg.peers.clear();
    std::erase_if(host.routes, [&](HostRoute const& route) { return route.ifname == leg.ifname; });
}

Result<Observed> FakeKernel::Effects::operator()(SetLink const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.leg.pf));
    VFMGR_TRY(auto* const target, leg(step.leg));
    auto const& parent = owner->legs.front();
    if (step.mtu > mtu_max)
        return refused(fmt::format("{} takes no MTU {}", target->ifname, step.mtu), "RTM_NEWLINK",
                       EINVAL);
    if (step.leg.vlan && step.mtu > parent.mtu)
        return refused(
            fmt::format("{} takes no MTU above {}'s {}", target->ifname, parent.ifname, parent.mtu),
            "RTM_NEWLINK", ERANGE);
    if (step.leg.vlan && step.up && !parent.up)
        return refused(
            fmt::format("{} can't be up while {} is down", target->ifname, parent.ifname),
            "RTM_NEWLINK", ENETDOWN);
    target->mtu = step.mtu;
    bool const changes = target->up != step.up && extent == Extent::whole;
    if (changes) target->up = step.up;
    if (changes && !step.up) drop_routes(*target);
    mirror(*owner, *target);
    if (step.leg.vlan) return Observed{};
    // vlan_device_event(): VLAN devices follow their parent up, down and to a smaller MTU.
    for (auto& other : owner->legs) {
        if (!other.id.vlan) continue;
        other.mtu = std::min(other.mtu, step.mtu);
        if (changes) other.up = step.up;
        if (changes && !step.up) drop_routes(other);
    }
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AddVlanLeg const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.leg.pf));
    if (!step.leg.vlan)
        return refused("the untagged leg is the PF's own netdev", "RTM_NEWLINK", EINVAL);
    if (auto const existing = leg(step.leg)) {
        if ((*existing)->ours) return Observed{};
        return refused(fmt::format("{} exists and is not vfmgr's", (*existing)->ifname),
                       "RTM_NEWLINK", EEXIST);
    }
    LegState made;
    made.id = step.leg;
    made.ifname = fmt::format("{}.{}", owner->info.ifname, *step.leg.vlan);
    made.mtu = owner->info.mtu;
    made.ours = true;
    owner->legs.push_back(std::move(made));
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemoveVlanLeg const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.leg.pf));
    auto const existing = leg(step.leg);
    if (!existing) return Observed{};
    if (!(*existing)->ours)
        return refused(fmt::format("{} is not vfmgr's to remove", (*existing)->ifname),
                       "RTM_DELLINK", EPERM);
    drop_routes(**existing);
    std::erase_if(owner->legs, [&](LegState const& one) { return one.id == step.leg; });
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AddAddress const& step) const {
    VFMGR_TRY(auto* const target, leg(step.leg));
    if (std::ranges::find(target->filtered, step.address) == target->filtered.end())
        target->filtered.push_back(step.address);
    if (contains(*target, step.address)) return Observed{};
    target->addresses.push_back(step.address);
    target->prefixes.push_back(own_prefix(step.address));
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemoveAddress const& step) const {
    auto const target = leg(step.leg);
    if (!target) return Observed{};
    std::erase((*target)->addresses, step.address);
    std::erase((*target)->filtered, step.address);
    std::erase((*target)->prefixes, own_prefix(step.address));
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AddPeer const& step) const {
    VFMGR_TRY(auto* const target, leg(step.leg));
    auto const what =
        fmt::format("no route to {} over {}", to_string(step.address), target->ifname);
    if (!target->up) return refused(what, "RTM_NEWROUTE", ENETDOWN);
    if (!contains(*target, step.source)) return refused(what, "RTM_NEWROUTE", EINVAL);
    std::erase_if(target->peers, [&](PeerEntry const& one) { return one.address == step.address; });
    std::erase_if(target->closed, [&](ClosedVm const& one) { return one.address == step.address; });
    target->closed.push_back({step.address, step.mac, step.source});
    bool const half = extent == Extent::half;  // the route is there, its neighbour not yet
    target->peers.push_back(
        {step.address, half ? std::nullopt : std::optional<MacAddress>(step.mac)});
    HostRoute const route{own_prefix(step.address), target->ifname};
    if (std::ranges::find(host.routes, route) == host.routes.end()) host.routes.push_back(route);
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemovePeer const& step) const {
    auto const target = leg(step.leg);
    if (!target) return Observed{};
    std::erase_if((*target)->peers,
                  [&](PeerEntry const& one) { return one.address == step.address; });
    std::erase_if((*target)->closed,
                  [&](ClosedVm const& one) { return one.address == step.address; });
    std::erase(host.routes, HostRoute{own_prefix(step.address), (*target)->ifname});
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AddRdmaLink const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.pf));
    if (owner->info.rdma_device) return Observed{};
    owner->info.rdma_device = "rxe_" + owner->info.ifname;
    owner->info.rdma_driver = "rxe";
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemoveRdmaLink const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.pf));
    if (!owner->info.rdma_device) return Observed{};
    // Only vfmgr's own, by its name; not what was asked for by another.
    if (host.network && host.network->rdma.contains(*owner->info.rdma_device)) return Observed{};
    if (owner->info.rdma_driver != "rxe")
        return refused(fmt::format("{} is not a software device", *owner->info.rdma_device),
                       "RDMA_NLDEV_CMD_DELLINK", EINVAL);
    owner->info.rdma_device.reset();
    owner->info.rdma_driver.reset();
    return Observed{};
}

}  // namespace vfmgr
