// SPDX-License-Identifier: Apache-2.0
// Effects of steps on the host's interfaces: link state and MTU, VLAN devices, addresses, peers,
// SoftRoCE.
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

bool contains(HostInterface const& interface, IpAddress const& address) {
    return std::ranges::find(interface.addresses, address) != interface.addresses.end();
}

// The PF's netdev is its untagged interface: info reports the same.
void mirror(PfState& pf, HostInterface const& interface) {
    if (interface.id.vlan) return;
    pf.info.up = interface.up;
    pf.info.mtu = interface.mtu;
}

}  // namespace

Result<HostInterface*> FakeKernel::Effects::interface(InterfaceId const& id) const {
    VFMGR_TRY(auto* const owner, pf(id.pf));
    auto const found = std::ranges::find(owner->interfaces, id, &HostInterface::id);
    if (found != owner->interfaces.end()) return &*found;
    return refused(fmt::format("there is no netdev {}", to_string(id)), "if_nametoindex", ENODEV);
}

// Linux flushes a device's routes and neighbours when it goes down or away.
void FakeKernel::Effects::drop_routes(HostInterface& interface) const {
    interface.peers.clear();
    std::erase_if(host.routes,
                  [&](HostRoute const& route) { return route.ifname == interface.ifname; });
}

Result<Observed> FakeKernel::Effects::operator()(SetLink const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.interface.pf));
    VFMGR_TRY(auto* const target, interface(step.interface));
    auto const& parent = owner->interfaces.front();
    if (step.mtu > mtu_max)
        return refused(fmt::format("{} takes no MTU {}", target->ifname, step.mtu), "RTM_NEWLINK",
                       EINVAL);
    if (step.interface.vlan && step.mtu > parent.mtu)
        return refused(
            fmt::format("{} takes no MTU above {}'s {}", target->ifname, parent.ifname, parent.mtu),
            "RTM_NEWLINK", ERANGE);
    if (step.interface.vlan && step.up && !parent.up)
        return refused(
            fmt::format("{} can't be up while {} is down", target->ifname, parent.ifname),
            "RTM_NEWLINK", ENETDOWN);
    target->mtu = step.mtu;
    bool const changes = target->up != step.up && extent == Extent::whole;
    if (changes) target->up = step.up;
    if (changes && !step.up) drop_routes(*target);
    mirror(*owner, *target);
    if (step.interface.vlan) return Observed{};
    // vlan_device_event(): VLAN devices follow their parent up, down and to a smaller MTU.
    for (auto& other : owner->interfaces) {
        if (!other.id.vlan) continue;
        other.mtu = std::min(other.mtu, step.mtu);
        if (changes) other.up = step.up;
        if (changes && !step.up) drop_routes(other);
    }
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AwaitCarrier const& step) const {
    VFMGR_TRY(auto const* const target, interface(step.interface));
    if (target->up) return Observed{};
    return fail(Problem::timed_out, fmt::format("{} is down and has no carrier", target->ifname),
                "set it up");
}

Result<Observed> FakeKernel::Effects::operator()(AddVlanInterface const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.interface.pf));
    if (!step.interface.vlan)
        return refused("the untagged interface is the PF's own netdev", "RTM_NEWLINK", EINVAL);
    if (auto const existing = interface(step.interface)) {
        if ((*existing)->ours) return Observed{};
        return refused(fmt::format("{} exists and is not vfmgr's", (*existing)->ifname),
                       "RTM_NEWLINK", EEXIST);
    }
    HostInterface made;
    made.id = step.interface;
    made.ifname = fmt::format("{}.{}", owner->info.ifname, *step.interface.vlan);
    made.mtu = owner->info.mtu;
    made.ours = true;
    owner->interfaces.push_back(std::move(made));
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemoveVlanInterface const& step) const {
    VFMGR_TRY(auto* const owner, pf(step.interface.pf));
    auto const existing = interface(step.interface);
    if (!existing) return Observed{};
    if (!(*existing)->ours)
        return refused(fmt::format("{} is not vfmgr's to remove", (*existing)->ifname),
                       "RTM_DELLINK", EPERM);
    drop_routes(**existing);
    std::erase_if(owner->interfaces,
                  [&](HostInterface const& one) { return one.id == step.interface; });
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AddAddress const& step) const {
    VFMGR_TRY(auto* const target, interface(step.interface));
    if (std::ranges::find(target->filtered, step.address) == target->filtered.end())
        target->filtered.push_back(step.address);
    if (contains(*target, step.address)) return Observed{};
    target->addresses.push_back(step.address);
    target->prefixes.push_back(own_prefix(step.address));
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemoveAddress const& step) const {
    auto const target = interface(step.interface);
    if (!target) return Observed{};
    std::erase((*target)->addresses, step.address);
    std::erase((*target)->filtered, step.address);
    std::erase((*target)->prefixes, own_prefix(step.address));
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(AddPeer const& step) const {
    VFMGR_TRY(auto* const target, interface(step.interface));
    auto const what =
        fmt::format("no route to {} over {}", to_string(step.address), target->ifname);
    if (!target->up) return refused(what, "RTM_NEWROUTE", ENETDOWN);
    if (!contains(*target, step.source)) return refused(what, "RTM_NEWROUTE", EINVAL);
    std::erase_if(target->peers, [&](PeerEntry const& one) { return one.address == step.address; });
    std::erase_if(target->closed, [&](ClosedVm const& one) { return one.address == step.address; });
    target->closed.push_back({step.address, step.mac, step.source, step.guest_plane});
    bool const half = extent == Extent::half;  // the route is there, its neighbour not yet
    target->peers.push_back(
        {step.address, half ? std::nullopt : std::optional<MacAddress>(step.mac)});
    HostRoute const route{own_prefix(step.address), target->ifname};
    if (std::ranges::find(host.routes, route) == host.routes.end()) host.routes.push_back(route);
    return Observed{};
}

Result<Observed> FakeKernel::Effects::operator()(RemovePeer const& step) const {
    auto const target = interface(step.interface);
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
    // Removes only vfmgr's own link, found by its name; not one that another party requested.
    if (host.network && host.network->rdma.contains(*owner->info.rdma_device)) return Observed{};
    if (owner->info.rdma_driver != "rxe")
        return refused(fmt::format("{} is not a software device", *owner->info.rdma_device),
                       "RDMA_NLDEV_CMD_DELLINK", EINVAL);
    owner->info.rdma_device.reset();
    owner->info.rdma_driver.reset();
    return Observed{};
}

}  // namespace vfmgr
