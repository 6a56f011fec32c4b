// SPDX-License-Identifier: Apache-2.0
// Networks of the host. A network changes nothing on the host before a VF is attached to it, so its
// plans have no steps: they are refused, or done.
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t networks_max = 256;

// The attachments to the network, those of VFs in quarantine too: cleaning them needs the network.
std::vector<Attachment const*> users_of(DesiredState const& desired, std::string const& network) {
    std::vector<Attachment const*> users;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.spec.network == network) users.push_back(&attachment);
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.attachment.spec.network == network) users.push_back(&quarantine.attachment);
    return users;
}

Error used(std::string const& network, Attachment const& user, std::string const& what_can_not) {
    return {Problem::conflict,
            fmt::format("network {} is used by VM {} (attachment {}), so {}", network, user.vm,
                        user.id, what_can_not),
            fmt::format("detach it first: vfctl detach {}", user.id)};
}

// Compares what an attachment and the host's interface depend on. Ranges and DSCP are used by what
// comes next: a choice of an address, a test.
bool same_on_the_wire(Network const& a, Network const& b) {
    return a.vlan == b.vlan && a.pkey == b.pkey && a.prefix == b.prefix && a.mtu == b.mtu &&
           a.rdma == b.rdma;
}

Result<void> check_users(DesiredState const& desired, Network const& before, Network const& after) {
    for (auto const* const user : users_of(desired, after.name)) {
        if (!same_on_the_wire(before, after))
            return fail(used(after.name, *user,
                             "its VLAN, P_Key, prefix, MTU and RDMA mode can't be changed"));
        auto const* const had = host_address_on(before, user->vf.pf);
        auto const* const has = host_address_on(after, user->vf.pf);
        if (had && (!has || *has != *had))
            return fail(used(after.name, *user,
                             fmt::format("the host's address on {} can't be {}",
                                         to_string(user->vf.pf), has ? "changed" : "removed")));
    }
    return {};
}

// The host has one routing table: a route of ours must never cover one of another owner.
Result<void> check_routes(HostView const& host, Network const& network) {
    auto const is_its_own = [&](HostRoute const& route) {
        return std::ranges::any_of(network.pfs, [&](NetworkPf const& on) {
            auto const* const interface = find_interface(host, InterfaceId{on.pf, network.vlan});
            return interface && interface->ifname == route.ifname;
        });
    };
    for (auto const& route : host.kernel.routes)
        if (route.prefix.overlaps(network.prefix) && !is_its_own(route))
            return fail(
                Problem::conflict,
                fmt::format("network {} ({}) overlaps the host's route {} over {}", network.name,
                            to_string(network.prefix), to_string(route.prefix), route.ifname),
                "choose a prefix that the host does not use");
    return {};
}

Result<void> check_other_networks(Networks const& networks, Network const& network) {
    for (auto const& [name, other] : networks)
        if (name != network.name && other.network.prefix.overlaps(network.prefix))
            return fail(
                Problem::conflict,
                fmt::format("network {} ({}) overlaps network {} ({})", network.name,
                            to_string(network.prefix), name, to_string(other.network.prefix)),
                "choose a prefix that no other network of this host uses");
    return {};
}

// What only Ethernet has.
Result<void> check_infiniband(PfInfo const& pf, Network const& network) {
    auto const refuse = [&](std::string const& what, char const* remedy) {
        return fail(Problem::unsupported,
                    fmt::format("network {} has {}, but {} is an InfiniBand PF", network.name, what,
                                display_name(pf)),
                    remedy);
    };
    if (network.vlan)
        return refuse(fmt::format("VLAN {}", *network.vlan),
                      "InfiniBand uses partitions (P_Keys) instead of VLANs: leave the VLAN out");
    if (network.dscp)
        return refuse(fmt::format("DSCP {}", *network.dscp),
                      "InfiniBand has service levels, which the subnet manager chooses: leave the "
                      "DSCP out");
    if (network.rdma == RdmaMode::rxe)
        return refuse("rdma rxe (SoftRoCE)", "InfiniBand NICs have their own RDMA: use rdma auto");
    return {};
}

// IPoIB's interface of a port is in one partition, and vfmgr makes no others.
Result<void> check_partition(Networks const& networks, PfInfo const& pf, Network const& network) {
    for (auto const& [name, other] : networks)
        if (name != network.name && host_address_on(other.network, pf.pci) &&
            other.network.pkey.value_or(Pkey()).key != network.pkey.value_or(Pkey()).key)
            return fail(Problem::conflict,
                        fmt::format("{} carries network {}, which is in another partition than "
                                    "network {}",
                                    display_name(pf), name, network.name),
                        "give both the same P_Key, or carry them on different PFs");
    return {};
}

Result<void> check_pf(HostView const& host, Networks const& networks, PciAddress const& pci,
                      Network const& network) {
    VFMGR_TRY(PfState const* pf, readable_pf(host, pci));
    if (pf->info.link_layer == LinkLayer::infiniband) {
        VFMGR_CHECK(check_infiniband(pf->info, network));
        VFMGR_CHECK(check_partition(networks, pf->info, network));
    } else if (network.pkey) {
        return fail(Problem::unsupported,
                    fmt::format("network {} has P_Key 0x{:04x}, but {} is an Ethernet PF",
                                network.name, network.pkey->key, display_name(pf->info)),
                    "Ethernet uses VLANs instead of partitions (P_Keys): leave the P_Key out");
    }
    return require_own_interface(pf->info, network);
}

}  // namespace

Result<Plan> plan_network(HostView const& host, DesiredState const& desired,
                          Network const& network) {
    auto const* const before = find_network(desired.networks, network.name);
    if (!before && desired.networks.size() >= networks_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("this host has {} networks already", networks_max),
                    "remove one that nothing uses: vfctl network list");
    if (before) VFMGR_CHECK(check_users(desired, *before, network));
    bool const same = before && same_on_the_wire(*before, network);
    for (auto const& on : network.pfs) {
        auto const* const had = before ? host_address_on(*before, on.pf) : nullptr;
        // What did not change was checked when it was set. Its PF may be gone by now.
        if (same && had && *had == on.host_address) continue;
        VFMGR_CHECK(check_pf(host, desired.networks, on.pf, network));
    }
    if (!before || before->prefix != network.prefix) {
        VFMGR_CHECK(check_other_networks(desired.networks, network));
        VFMGR_CHECK(check_routes(host, network));
    }
    return Plan{};
}

Result<Plan> plan_network_removal(DesiredState const& desired, std::string const& name) {
    if (!find_network(desired.networks, name))
        return fail(Problem::not_found, fmt::format("there is no network {}", name),
                    "vfctl network list shows those of this host");
    if (auto const users = users_of(desired, name); !users.empty())
        return fail(used(name, *users.front(), "it can't be removed"));
    for (auto const& [pool, each] : desired.pools)
        if (each.pool.defaults.network == name)
            return fail(Problem::conflict,
                        fmt::format("network {} is the default of pool {}", name, pool),
                        fmt::format("change the pool first: vfctl pool set {}", pool));
    return Plan{};
}

}  // namespace vfmgr
