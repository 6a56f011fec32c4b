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

bool is_as_desired(ObservedRdmaLink const& observed, SoftRdmaLink const& requested) {
    return observed.type == requested.type && observed.ifname == requested.ifname;
}

std::string what_it_is(ObservedRdmaLink const& observed) {
    auto const type = observed.type ? fmt::format("a link of type {}", enum_name(*observed.type))
                                    : std::string("an RDMA device that is not a software link");
    return observed.ifname ? fmt::format("{} on {}", type, *observed.ifname) : type;
}

Result<HostNetworkView const*> readable_network(HostView const& host) {
    auto const& network = host.kernel.network;
    if (network && !network->stale) return &*network;
    return fail(Problem::unavailable,
                network ? fmt::format("the host's network can't be read: {}", network->stale_reason)
                        : std::string("the host's network has not been read yet"),
                "try again in a moment");
}

Result<void> check_names(SoftRdmaLink const& requested) {
    if (auto const wrong = wrong_rdma_name(requested.name))
        return fail(Problem::invalid_request, fmt::format("the name of an RDMA link {}", *wrong),
                    "choose a name such as rxe0");
    if (auto const wrong = wrong_netdev_name(requested.ifname))
        return fail(Problem::invalid_request, fmt::format("the name of a netdev {}", *wrong),
                    "name one that ip link shows");
    if (requested.name.starts_with(responders_link_prefix))
        return fail(Problem::invalid_request,
                    fmt::format("names that begin with {} are reserved for the links that vfmgr "
                                "creates for its own tests",
                                responders_link_prefix),
                    "choose another name, such as rxe0");
    return {};
}

std::string reaches(SoftRdmaType type) {
    return type == SoftRdmaType::rxe
               ? "SoftRoCE answers any machine that reaches UDP port 4791 over it, in the kernel"
               : "iWARP in software answers any machine that reaches TCP ports of RDMA programs "
                 "over it, in the kernel";
}

Result<void> check_trust(TrustedNetdevs const& trusted, SoftRdmaLink const& requested) {
    if (trusts(trusted, requested.ifname)) return {};
    auto wider = trusted;
    wider.push_back(requested.ifname);
    return fail(
        Problem::forbidden,
        fmt::format("{} is not marked as a trusted network, and {}", requested.ifname,
                    reaches(requested.type)),
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

// A link works only where frames of its netdev arrive as that netdev's.
Result<void> check_kind(SoftRdmaLink const& requested, NetdevState const& netdev) {
    auto const& [name, type, on] = requested;
    auto const instead = [&](std::string const& other) {
        return fmt::format("make it there: vfctl rdma link add {} type {} netdev {}", name,
                           enum_name(type), other);
    };
    if (netdev.loopback)
        return fail(
            Problem::unsupported,
            fmt::format("{} is the loopback device, over which no other machine is reached", on),
            "name the netdev of a network");
    if (netdev.parent && type == SoftRdmaType::rxe)
        return fail(
            Problem::unsupported,
            fmt::format("{} is a VLAN device, on which the kernel creates no rxe link; a link on "
                        "the device below it has GIDs of its VLANs, too",
                        on),
            netdev.parent->empty() ? std::string("name the device below it")
                                   : instead(*netdev.parent));
    if (!netdev.ethernet)
        return fail(Problem::unsupported, fmt::format("{} is not an Ethernet device", on),
                    "name one that is: InfiniBand NICs have their own RDMA");
    if (netdev.controller)
        return fail(
            Problem::conflict,
            fmt::format("{} is part of {}, which gets every frame that arrives on it: a link "
                        "on {} would get none",
                        on, *netdev.controller, on),
            instead(*netdev.controller));
    return {};
}

// A VF that is attached, or may be at any time, loses its netdev, and the link goes with it.
Result<std::optional<std::string>> check_vf(HostView const& host, DesiredState const& desired,
                                            std::string const& name, NetdevState const& netdev) {
    if (!netdev.pci) return std::nullopt;
    for (auto const& [address, pf] : host.kernel.pfs)
        for (auto const& vf : pf.vfs) {
            if (vf.pci != *netdev.pci) continue;
            VfId const id{address, vf.index};
            for (auto const& [attachment_id, attachment] : desired.attachments)
                if (attachment.vf == id)
                    return fail(Problem::vf_in_use,
                                fmt::format("{} is VF {}, which is attached to {} (attachment {})",
                                            name, to_string(id), attachment.vm, attachment_id),
                                "name another netdev");
            return fmt::format(
                "{} is VF {}: when the VF is attached, the link goes with its netdev", name,
                to_string(id));
        }
    return std::nullopt;
}

// The kernel creates only one link of each type on a netdev.
Result<void> check_same_type(HostNetworkView const& network, SoftRdmaLink const& requested) {
    for (auto const& [name, observed] : network.rdma) {
        if (observed.type != requested.type || observed.ifname != requested.ifname ||
            name == requested.name)
            continue;
        auto const ours = name.starts_with(responders_link_prefix);
        return fail(Problem::conflict,
                    fmt::format("{} already has the {} link {}{}, and can have only one",
                                requested.ifname, enum_name(requested.type), name,
                                ours ? ", which vfmgr created to test attached VFs" : ""),
                    ours ? fmt::format("use {}, or try again when no VF of a network with rdma=rxe "
                                       "is attached there",
                                       name)
                         : fmt::format("use {}, or delete it: rdma link delete {}", name, name));
    }
    return {};
}

Result<void> check_module(HostNetworkView const& network, SoftRdmaType type) {
    auto const there = type == SoftRdmaType::rxe ? network.rxe_module : network.siw_module;
    if (there.value_or(true)) return {};
    return fail(Problem::unsupported, fmt::format("this kernel has no module {}", module_of(type)),
                fmt::format("install the package with this module, which vfctl doctor --symptom "
                            "softroce names, then modprobe {}",
                            module_of(type)));
}

// Attachments whose VMs prove RDMA to this host over the link.
std::vector<std::string> attachments_over(HostView const& host, DesiredState const& desired,
                                          std::string const& name) {
    std::vector<std::string> users;
    for (auto const& [id, attachment] : desired.attachments) {
        auto const* pf = find_pf(host, attachment.vf.pf);
        if (pf && pf->info.rdma_device == name && attachment.spec.network)
            users.push_back(fmt::format("VM {} (attachment {}) tests over it", attachment.vm, id));
    }
    return users;
}

// Returns all uses of the link, except processes, that its deletion would break.
std::vector<std::string> uses_of(HostView const& host, DesiredState const& desired,
                                 std::string const& name, ObservedRdmaLink const& observed) {
    std::vector<std::string> uses;
    for (auto const& user : observed.users)
        if (!user.pid) uses.push_back(user_sentence(user));
    if (observed.users_unknown)
        uses.push_back(fmt::format("its users can't be read: {}", *observed.users_unknown));
    for (auto& attachment : attachments_over(host, desired, name))
        uses.push_back(std::move(attachment));
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
                SoftRdmaLink const& requested) {
    auto const observed = network.rdma.find(requested.name);
    if (observed != network.rdma.end() && is_as_desired(observed->second, requested))
        return {RdmaLinkState::present, {}};
    if (observed != network.rdma.end())
        return {RdmaLinkState::conflict,
                fmt::format("{} is {} now", requested.name, what_it_is(observed->second))};
    if (!trusts(trusted, requested.ifname))
        return {
            RdmaLinkState::untrusted,
            fmt::format("{} is no longer among trusted_netdevs of [rdma_links]", requested.ifname)};
    auto const netdev = network.netdevs.find(requested.ifname);
    if (netdev == network.netdevs.end())
        return {RdmaLinkState::waiting, fmt::format("waits for {}", requested.ifname)};
    for (auto const& check :
         {check_kind(requested, netdev->second), check_same_type(network, requested),
          check_module(network, requested.type)})
        if (!check) return {RdmaLinkState::missing, check.error().detail};
    return {RdmaLinkState::missing, {}};
}

}  // namespace

std::string rdma_link_advice(SoftRdmaLink const& link) {
    return fmt::format(
        "{}: let only that network's machines through the firewall, and check what is known of "
        "this "
        "kernel: vfctl doctor --symptom softroce",
        link.type == SoftRdmaType::rxe
            ? fmt::format("{} answers any machine that reaches UDP port 4791 over {}", link.name,
                          link.ifname)
            : fmt::format(
                  "{} answers any machine that reaches the TCP ports of RDMA programs over {}",
                  link.name, link.ifname));
}

Result<void> check_processes(std::string const& name, std::vector<RdmaUser> const& users) {
    std::vector<std::string> uses;
    std::vector<std::string> pids;
    for (auto const& user : users) {
        if (!user.pid) continue;
        uses.push_back(user_sentence(user));
        // A verification of this daemon ends by itself.
        if (user.comm != "vfmgrd") pids.push_back(std::to_string(*user.pid));
    }
    if (uses.empty()) return {};
    return fail(in_use(
        name, uses,
        pids.empty()
            ? std::string("try again when the running verification has ended")
            : fmt::format(
                  "end them first: kill {}; even with --force the kernel would wait for them",
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
                            TrustedNetdevs const& trusted, SoftRdmaLink const& requested) {
    VFMGR_CHECK(check_names(requested));
    auto const declared = desired.rdma_links.find(requested.name);
    bool const is_declared = declared != desired.rdma_links.end();
    if (is_declared && declared->second.link != requested)
        return fail(
            Problem::conflict,
            fmt::format("{} is declared as {} on {}", requested.name,
                        enum_name(declared->second.link.type), declared->second.link.ifname),
            fmt::format(delete_it, requested.name));
    VFMGR_CHECK(check_trust(trusted, requested));
    VFMGR_TRY(HostNetworkView const* network, readable_network(host));
    Plan plan;
    if (auto const observed = network->rdma.find(requested.name); observed != network->rdma.end()) {
        if (!is_as_desired(observed->second, requested))
            return fail(Problem::conflict,
                        fmt::format("{} is already {}, which vfmgr did not create", requested.name,
                                    what_it_is(observed->second)),
                        "choose another name");
        if (!is_declared)
            plan.notes = {fmt::format("{} already exists; from now on vfmgr owns it and creates it "
                                      "again at boot",
                                      requested.name),
                          rdma_link_advice(requested)};
        return plan;
    }
    auto const netdev = network->netdevs.find(requested.ifname);
    if (netdev == network->netdevs.end()) {
        if (!is_declared) return fail(no_netdev(*network, requested.ifname));
        plan.notes.push_back(fmt::format("waits for {}", requested.ifname));
        return plan;
    }
    VFMGR_CHECK(check_kind(requested, netdev->second));
    VFMGR_TRY(auto note, check_vf(host, desired, requested.ifname, netdev->second));
    VFMGR_CHECK(check_same_type(*network, requested));
    if (!netdev->second.up)
        return fail(Problem::conflict, fmt::format("{} is down", requested.ifname),
                    fmt::format("bring it up: ip link set dev {} up", requested.ifname));
    VFMGR_CHECK(check_module(*network, requested.type));
    plan.steps.emplace_back(AddSoftRdmaLink{requested});
    if (note) plan.notes.push_back(std::move(*note));
    plan.notes.push_back(rdma_link_advice(requested));
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
                    fmt::format("vfmgr did not create {} and leaves it alone", name),
                    fmt::format("if nothing needs it: rdma link delete {}", name));
    }
    VFMGR_TRY(HostNetworkView const* network, readable_network(host));
    Plan plan;
    auto const observed = network->rdma.find(name);
    if (observed == network->rdma.end()) {
        plan.notes.push_back(
            fmt::format("{} does not exist; vfmgr will not create it again", name));
        return plan;
    }
    if (!is_as_desired(observed->second, declared->second.link)) {
        plan.notes.push_back(
            fmt::format("{} is now {}, which stays", name, what_it_is(observed->second)));
        return plan;
    }
    VFMGR_CHECK(check_processes(name, observed->second.users));
    auto const uses = uses_of(host, desired, name, observed->second);
    if (!uses.empty() && !what.force)
        return fail(
            in_use(name, uses,
                   fmt::format("stop that first, or delete it anyway: vfctl rdma link delete "
                               "{} --force",
                               name)));
    for (auto const& use : uses)
        plan.blast_radius.push_back(fmt::format("RDMA over {} ends: {}", name, use));
    plan.steps.emplace_back(RemoveSoftRdmaLink{name, what.force});
    return plan;
}

Plan plan_rdma_link_restore(HostNetworkView const& network, TrustedNetdevs const& trusted,
                            SoftRdmaLink const& requested) {
    Plan plan;
    if (network.stale) {
        plan.notes.push_back("the host's network can't be read: " + network.stale_reason);
        return plan;
    }
    auto [state, detail] = judge(network, trusted, requested);
    if (state == RdmaLinkState::missing && detail.empty())
        plan.steps.emplace_back(AddSoftRdmaLink{requested});
    else if (state != RdmaLinkState::present)
        plan.notes.push_back(std::move(detail));
    return plan;
}

std::vector<RdmaLink> rdma_links(HostView const& host, DesiredState const& desired,
                                 TrustedNetdevs const& trusted) {
    std::map<std::string, RdmaLink> links;
    static HostNetworkView const nothing{};
    auto const& network = host.kernel.network ? *host.kernel.network : nothing;
    for (auto const& [name, observed] : network.rdma)
        if (observed.type)
            links[name] = {name, RdmaLinkOwner::other, RdmaLinkState::present, {}, 0, {}, observed};
    for (auto const& [name, desired_link] : desired.rdma_links) {
        auto& link = links[name];
        link.name = name;
        link.owner = RdmaLinkOwner::vfmgr;
        link.revision = desired_link.revision;
        link.desired = RdmaLinkSpec{desired_link.link.type, desired_link.link.ifname};
        auto const [state, detail] = judge(network, trusted, desired_link.link);
        link.state = state;
        link.detail = detail;
        if (auto const observed = network.rdma.find(name); observed != network.rdma.end())
            link.observed = observed->second;
    }
    std::vector<RdmaLink> all;
    for (auto& [name, link] : links) {
        if (network.stale) link.detail = network.stale_reason;
        all.push_back(std::move(link));
    }
    return all;
}

}  // namespace vfmgr
