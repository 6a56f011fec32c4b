// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/rdma_links.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace vfmgr {
namespace {

constexpr auto delete_it = "delete it first (vfctl rdma link delete {}), or choose another name";

bool trusts(TrustedNetdevs const& trusted, std::string const& netdev) {
    return std::ranges::find(trusted, netdev) != trusted.end();
}

bool is_as_wanted(ObservedRdmaLink const& seen, SoftRdmaLink const& want) {
    return seen.type == want.type && seen.netdev == want.netdev;
}

std::string what_it_is(ObservedRdmaLink const& seen) {
    auto const type = seen.type ? fmt::format("a link of type {}", enum_name(*seen.type))
                                : std::string("an RDMA device that is no software link");
    return seen.netdev ? fmt::format("{} on {}", type, *seen.netdev) : type;
}

Result<HostNetworkView const*> readable_network(HostView const& host) {
    auto const& network = host.kernel.network;
    if (network && !network->stale) return &*network;
    return fail(Problem::unavailable,
                network ? fmt::format("the host's network can't be read: {}", network->stale_reason)
                        : std::string("the host's network was not looked at yet"),
                "try again in a moment");
}

Result<void> check_names(SoftRdmaLink const& want) {
    if (auto const wrong = wrong_rdma_name(want.name))
        return fail(Problem::invalid_request, fmt::format("the name of an RDMA link {}", *wrong),
                    "choose such a name: rxe0");
    if (auto const wrong = wrong_netdev_name(want.netdev))
        return fail(Problem::invalid_request, fmt::format("the name of a netdev {}", *wrong),
                    "name one that ip link shows");
    if (want.name.starts_with(responders_link_prefix))
        return fail(Problem::invalid_request,
                    fmt::format("names that begin with {} are of the links that vfmgr makes for "
                                "its own tests",
                                responders_link_prefix),
                    "choose another name: rxe0");
    return {};
}

std::string reaches(SoftRdmaType type) {
    return type == SoftRdmaType::rxe
               ? "SoftRoCE answers whoever reaches UDP port 4791 over it, in the kernel"
               : "iWARP in software answers whoever reaches TCP ports of RDMA programs over it, in "
                 "the kernel";
}

Result<void> check_trust(TrustedNetdevs const& trusted, SoftRdmaLink const& want) {
    if (trusts(trusted, want.netdev)) return {};
    auto wider = trusted;
    wider.push_back(want.netdev);
    return fail(
        Problem::forbidden,
        fmt::format("{} is not marked as a trusted network, and {}", want.netdev,
                    reaches(want.type)),
        fmt::format("if only trusted machines reach it, set trusted_netdevs = [\"{}\"] under "
                    "[rdma_links] in /etc/vfmgr/vfmgr.toml, then systemctl restart vfmgrd",
                    fmt::join(wider, "\", \"")));
}

Error no_netdev(HostNetworkView const& network, std::string const& name) {
    std::vector<std::string> names;
    for (auto const& [each, netdev] : network.netdevs)
        if (netdev.ethernet && !netdev.parent && !netdev.controller) names.push_back(each);
    return {Problem::not_found, fmt::format("there is no netdev {}", name),
            names.empty()
                ? std::string("make it first, or name one that ip link shows")
                : fmt::format("make it first, or name one of {}", fmt::join(names, ", "))};
}

// A link is only where frames of its netdev arrive as such.
Result<void> check_kind(SoftRdmaLink const& want, NetdevState const& netdev) {
    auto const& [name, type, on] = want;
    auto const instead = [&](std::string const& other) {
        return fmt::format("make it there: vfctl rdma link add {} type {} netdev {}", name,
                           enum_name(type), other);
    };
    if (netdev.loopback)
        return fail(Problem::unsupported,
                    fmt::format("{} is the loopback device, over which nobody else is reached", on),
                    "name the netdev of a network");
    if (netdev.parent && type == SoftRdmaType::rxe)
        return fail(
            Problem::unsupported,
            fmt::format("{} is a VLAN device, on which the kernel makes no rxe link; one on "
                        "the device below has GIDs of its VLANs, too",
                        on),
            netdev.parent->empty() ? std::string("name the device below it")
                                   : instead(*netdev.parent));
    if (!netdev.ethernet)
        return fail(Problem::unsupported, fmt::format("{} is not an Ethernet device", on),
                    "name one that is: InfiniBand NICs have RDMA of their own");
    if (netdev.controller)
        return fail(Problem::conflict,
                    fmt::format("{} is part of {}, and what arrives on it arrives there: a link on "
                                "{} would get nothing",
                                on, *netdev.controller, on),
                    instead(*netdev.controller));
    return {};
}

// Of a VF that is lent, or may be any time, the netdev goes and its link with it.
Result<std::optional<std::string>> check_vf(HostView const& host, DesiredState const& desired,
                                            std::string const& name, NetdevState const& netdev) {
    if (!netdev.pci) return std::nullopt;
    for (auto const& [address, pf] : host.kernel.pfs)
        for (auto const& vf : pf.vfs) {
            if (vf.pci != *netdev.pci) continue;
            VfId const id{address, vf.index};
            for (auto const& [attachment, lease] : desired.attachments)
                if (lease.vf == id)
                    return fail(Problem::vf_in_use,
                                fmt::format("{} is VF {}, which is lent to {} (attachment {})",
                                            name, to_string(id), lease.vm_name, attachment),
                                "name another netdev");
            return fmt::format("{} is VF {}: when it is lent, the link goes with its netdev", name,
                               to_string(id));
        }
    return std::nullopt;
}

// The kernel makes one of each type on a netdev.
Result<void> check_same_type(HostNetworkView const& network, SoftRdmaLink const& want) {
    for (auto const& [name, seen] : network.rdma) {
        if (seen.type != want.type || seen.netdev != want.netdev || name == want.name) continue;
        auto const ours = name.starts_with(responders_link_prefix);
        return fail(Problem::conflict,
                    fmt::format("{} has the {} link {} already{}, and can have only one",
                                want.netdev, enum_name(want.type), name,
                                ours ? ", which vfmgr made to test the VFs that are lent" : ""),
                    ours ? fmt::format("use {}, or try again when no VF of a network with rdma=rxe "
                                       "is lent there",
                                       name)
                         : fmt::format("use {}, or delete it: rdma link delete {}", name, name));
    }
    return {};
}

char const* module_of(SoftRdmaType type) {
    return type == SoftRdmaType::rxe ? "rdma_rxe" : "siw";
}

Result<void> check_module(HostNetworkView const& network, SoftRdmaType type) {
    auto const there = type == SoftRdmaType::rxe ? network.rxe_module : network.siw_module;
    if (there.value_or(true)) return {};
    return fail(Problem::unsupported, fmt::format("this kernel has no module {}", module_of(type)),
                fmt::format("install the kernel's modules that hold it, then modprobe {}; vfctl "
                            "doctor --symptom softroce says which package",
                            module_of(type)));
}

// A lease whose VM proves RDMA to this host over the link.
std::vector<std::string> leases_over(HostView const& host, DesiredState const& desired,
                                     std::string const& name) {
    std::vector<std::string> users;
    for (auto const& [id, lease] : desired.attachments) {
        auto const* pf = find_pf(host, lease.vf.pf);
        if (pf && pf->info.rdma_device == name && lease.spec.network)
            users.push_back(fmt::format("VM {} (attachment {}) tests over it", lease.vm_name, id));
    }
    return users;
}

// All besides processes that deleting it would hurt.
std::vector<std::string> uses_of(HostView const& host, DesiredState const& desired,
                                 std::string const& name, ObservedRdmaLink const& seen) {
    std::vector<std::string> uses;
    for (auto const& user : seen.users)
        if (!user.pid) uses.push_back(user_sentence(user));
    if (seen.users_unknown)
        uses.push_back(fmt::format("who uses it can't be seen: {}", *seen.users_unknown));
    for (auto& lease : leases_over(host, desired, name)) uses.push_back(std::move(lease));
    return uses;
}

Error in_use(std::string const& name, std::vector<std::string> const& uses, std::string remedy) {
    return {Problem::link_in_use,
            fmt::format("RDMA link {} is in use: {}", name, fmt::join(uses, "; ")),
            std::move(remedy)};
}

struct Judgement {
    RdmaLinkState state;
    std::string detail;
};

Judgement judge(HostNetworkView const& network, TrustedNetdevs const& trusted,
                SoftRdmaLink const& want) {
    auto const seen = network.rdma.find(want.name);
    if (seen != network.rdma.end() && is_as_wanted(seen->second, want))
        return {RdmaLinkState::present, {}};
    if (seen != network.rdma.end())
        return {RdmaLinkState::conflict,
                fmt::format("{} is {} now", want.name, what_it_is(seen->second))};
    if (!trusts(trusted, want.netdev))
        return {
            RdmaLinkState::untrusted,
            fmt::format("{} is not among trusted_netdevs of [rdma_links] any more", want.netdev)};
    auto const netdev = network.netdevs.find(want.netdev);
    if (netdev == network.netdevs.end())
        return {RdmaLinkState::waiting, fmt::format("waits for {}", want.netdev)};
    for (auto const& check : {check_kind(want, netdev->second), check_same_type(network, want),
                              check_module(network, want.type)})
        if (!check) return {RdmaLinkState::missing, check.error().detail};
    return {RdmaLinkState::missing, {}};
}

}  // namespace

std::string rdma_link_advice(SoftRdmaLink const& link) {
    return fmt::format(
        "{}: let only that network's machines through the firewall, and see what is known of this "
        "kernel: vfctl doctor --symptom softroce",
        link.type == SoftRdmaType::rxe
            ? fmt::format("{} answers whoever reaches UDP port 4791 over {}", link.name,
                          link.netdev)
            : fmt::format("{} answers whoever reaches the TCP ports of RDMA programs over {}",
                          link.name, link.netdev));
}

Result<void> check_processes(std::string const& name, std::vector<RdmaUser> const& users) {
    std::vector<std::string> uses;
    std::vector<std::string> pids;
    for (auto const& user : users) {
        if (!user.pid) continue;
        uses.push_back(user_sentence(user));
        // A verification of this daemon's own ends by itself.
        if (user.comm != "vfmgrd") pids.push_back(std::to_string(*user.pid));
    }
    if (uses.empty()) return {};
    return fail(in_use(
        name, uses,
        pids.empty()
            ? std::string("try again when the verification that goes on has ended")
            : fmt::format("end them first: kill {}; the kernel would wait for them, by force, too",
                          fmt::join(pids, " "))));
}

std::string user_sentence(RdmaUser const& user) {
    if (!user.pid)
        return fmt::format("the kernel{} has a {}",
                           user.comm.empty() ? "" : fmt::format(" ({})", user.comm), user.holds);
    return fmt::format("{} (pid {}) has a {}", user.comm.empty() ? "a process" : user.comm,
                       *user.pid, user.holds);
}

Result<Plan> plan_rdma_link(HostView const& host, DesiredState const& desired,
                            TrustedNetdevs const& trusted, SoftRdmaLink const& want) {
    VFMGR_CHECK(check_names(want));
    auto const declared = desired.rdma_links.find(want.name);
    bool const is_declared = declared != desired.rdma_links.end();
    if (is_declared && declared->second.link != want)
        return fail(
            Problem::conflict,
            fmt::format("{} is declared as {} on {}", want.name,
                        enum_name(declared->second.link.type), declared->second.link.netdev),
            fmt::format(delete_it, want.name));
    VFMGR_CHECK(check_trust(trusted, want));
    VFMGR_TRY(HostNetworkView const* network, readable_network(host));
    Plan plan;
    if (auto const seen = network->rdma.find(want.name); seen != network->rdma.end()) {
        if (!is_as_wanted(seen->second, want))
            return fail(Problem::conflict,
                        fmt::format("{} is {} already, which vfmgr did not make", want.name,
                                    what_it_is(seen->second)),
                        "choose another name");
        if (!is_declared)
            plan.notes = {fmt::format("{} is there already; from now on it is vfmgr's, which makes "
                                      "it again at boot",
                                      want.name),
                          rdma_link_advice(want)};
        return plan;
    }
    auto const netdev = network->netdevs.find(want.netdev);
    if (netdev == network->netdevs.end()) {
        if (!is_declared) return fail(no_netdev(*network, want.netdev));
        plan.notes.push_back(fmt::format("waits for {}", want.netdev));
        return plan;
    }
    VFMGR_CHECK(check_kind(want, netdev->second));
    VFMGR_TRY(auto note, check_vf(host, desired, want.netdev, netdev->second));
    VFMGR_CHECK(check_same_type(*network, want));
    if (!netdev->second.up)
        return fail(Problem::conflict, fmt::format("{} is down", want.netdev),
                    fmt::format("set it up: ip link set dev {} up", want.netdev));
    VFMGR_CHECK(check_module(*network, want.type));
    plan.steps.emplace_back(AddSoftRdmaLink{want});
    if (note) plan.notes.push_back(std::move(*note));
    plan.notes.push_back(rdma_link_advice(want));
    return plan;
}

Result<Plan> plan_rdma_link_removal(HostView const& host, DesiredState const& desired,
                                    RdmaLinkRemoval const& what) {
    auto const& name = what.name;
    auto const declared = desired.rdma_links.find(name);
    if (declared == desired.rdma_links.end()) {
        auto const& network = host.kernel.network;
        if (!network || !network->rdma.contains(name))
            return fail(Problem::not_found, fmt::format("there is no RDMA link {}", name),
                        "vfctl rdma link list shows those of this host");
        return fail(Problem::conflict,
                    fmt::format("{} was not made by vfmgr, which leaves it alone", name),
                    fmt::format("if nobody needs it: rdma link delete {}", name));
    }
    VFMGR_TRY(HostNetworkView const* network, readable_network(host));
    Plan plan;
    auto const seen = network->rdma.find(name);
    if (seen == network->rdma.end()) {
        plan.notes.push_back(fmt::format("{} is not there; it is not made again", name));
        return plan;
    }
    if (!is_as_wanted(seen->second, declared->second.link)) {
        plan.notes.push_back(
            fmt::format("{} is {} now, which stays", name, what_it_is(seen->second)));
        return plan;
    }
    VFMGR_CHECK(check_processes(name, seen->second.users));
    auto const uses = uses_of(host, desired, name, seen->second);
    if (!uses.empty() && !what.force)
        return fail(in_use(name, uses,
                           fmt::format("stop that first, or take it away: vfctl rdma link delete "
                                       "{} --force",
                                       name)));
    for (auto const& use : uses)
        plan.blast_radius.push_back(fmt::format("RDMA over {} ends: {}", name, use));
    plan.steps.emplace_back(RemoveSoftRdmaLink{name, what.force});
    return plan;
}

Plan plan_rdma_link_restore(HostNetworkView const& network, TrustedNetdevs const& trusted,
                            SoftRdmaLink const& want) {
    Plan plan;
    if (network.stale) {
        plan.notes.push_back("the host's network can't be read: " + network.stale_reason);
        return plan;
    }
    auto [state, detail] = judge(network, trusted, want);
    if (state == RdmaLinkState::missing && detail.empty())
        plan.steps.emplace_back(AddSoftRdmaLink{want});
    else if (state != RdmaLinkState::present)
        plan.notes.push_back(std::move(detail));
    return plan;
}

std::vector<RdmaLink> rdma_links(HostView const& host, DesiredState const& desired,
                                 TrustedNetdevs const& trusted) {
    std::map<std::string, RdmaLink> links;
    static HostNetworkView const nothing{};
    auto const& network = host.kernel.network ? *host.kernel.network : nothing;
    for (auto const& [name, seen] : network.rdma)
        if (seen.type)
            links[name] = {name, RdmaLinkOwner::other, RdmaLinkState::present, {}, 0, {}, seen};
    for (auto const& [name, wanted] : desired.rdma_links) {
        auto& link = links[name];
        link.name = name;
        link.owner = RdmaLinkOwner::vfmgr;
        link.revision = wanted.revision;
        link.wanted = RdmaLinkSpec{wanted.link.type, wanted.link.netdev};
        auto const [state, detail] = judge(network, trusted, wanted.link);
        link.state = state;
        link.detail = detail;
        if (auto const seen = network.rdma.find(name); seen != network.rdma.end())
            link.observed = seen->second;
    }
    std::vector<RdmaLink> all;
    for (auto& [name, link] : links) {
        if (network.stale) link.detail = network.stale_reason;
        all.push_back(std::move(link));
    }
    return all;
}

}  // namespace vfmgr
