// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "api/types/json.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

template <>
void Json<Plan>::write(nlohmann::json& out, Plan const& plan) {
    auto steps = nlohmann::json::array();
    for (auto const& step : plan.steps) {
        nlohmann::json described;
        to_json(described, step);
        described["sentence"] = sentence(step);
        steps.push_back(std::move(described));
    }
    JsonWriter writer(out);
    writer.value("steps", steps);
    writer.value("blast_radius", plan.blast_radius);
    writer.value("notes", plan.notes);
}

namespace {

Result<void> check_count(HostView const& host, DesiredState const& desired, PfState const& pf,
                         std::uint16_t count) {
    auto const& info = pf.info;
    if (count > info.total_vfs)
        return fail(Problem::limit_exceeded,
                    fmt::format("{} ({}) allows {} VFs, {} were requested", display_name(info),
                                to_string(info.pci), info.total_vfs, count),
                    fmt::format("request at most {}", info.total_vfs));
    if (count == info.num_vfs || info.num_vfs == 0) return {};
    if (host.hypervisor.stale)
        return fail(Problem::unavailable,
                    fmt::format("libvirt can't report which VFs of {} are in use: {}",
                                display_name(info), host.hypervisor.stale_reason),
                    "start libvirtd and try again");
    auto const uses = vf_uses(host, desired, info.pci);
    if (uses.empty()) return {};
    std::vector<std::string> reasons;
    for (auto const& use : uses)
        reasons.push_back(fmt::format("VF {} is {}", use.vf.index, use.reason));
    return fail(Problem::vf_in_use,
                fmt::format("changing {} from {} to {} VFs would remove every VF, but {}",
                            display_name(info), info.num_vfs, count, fmt::join(reasons, "; ")),
                "detach them first: vfctl detach VM, or virsh detach-device for what vfmgr did "
                "not attach");
}

// True when the networks are equal for their attachments: a value that only tests use is no change.
bool is_the_same(Network before, Network const& after) {
    before.dscp = after.dscp;
    return before == after;
}

// Attachments name networks: a network in use can be neither dropped nor changed.
Result<void> check_used_networks(DesiredState const& desired, PciAddress const& pf,
                                 PfSpec const& spec) {
    auto const now = desired.pfs.find(pf);
    for (auto const& [id, attachment] : desired.attachments) {
        if (attachment.vf.pf != pf || !attachment.spec.network) continue;
        auto const* after = find_network(spec, *attachment.spec.network);
        auto const* before = now == desired.pfs.end()
                                 ? nullptr
                                 : find_network(now->second.spec, *attachment.spec.network);
        if (!after || (before && !is_the_same(*before, *after)))
            return fail(Problem::conflict,
                        fmt::format("network {} is used by VM {} (attachment {}) and can't be {}",
                                    *attachment.spec.network, attachment.vm, id,
                                    after ? "changed" : "removed"),
                        fmt::format("detach it first: vfctl detach {}", id));
    }
    return {};
}

// A prefix that this PF's own interfaces hold may stay; all other routes must not be covered.
Result<void> check_routes(HostView const& host, PfState const& pf, Network const& network) {
    auto const* own = find_interface(host, InterfaceId{pf.info.pci, network.vlan});
    for (auto const& route : host.kernel.routes) {
        if (own && route.ifname == own->ifname) continue;
        if (route.prefix.overlaps(network.prefix))
            return fail(
                Problem::conflict,
                fmt::format("network {} ({}) overlaps the host's route {} over {}", network.name,
                            to_string(network.prefix), to_string(route.prefix), route.ifname),
                "choose a prefix that the host does not use");
    }
    return {};
}

Result<void> check_other_networks(DesiredState const& desired, PciAddress const& pf,
                                  Network const& network) {
    for (auto const& [address, other] : desired.pfs) {
        if (address == pf) continue;
        for (auto const& theirs : other.spec.networks)
            if (theirs.prefix.overlaps(network.prefix))
                return fail(Problem::conflict,
                            fmt::format("network {} ({}) overlaps network {} ({}) of {}",
                                        network.name, to_string(network.prefix), theirs.name,
                                        to_string(theirs.prefix), to_string(address)),
                            "choose a prefix that no other network of this host uses");
    }
    return {};
}

Result<void> check_networks(HostView const& host, DesiredState const& desired, PfState const& pf,
                            PfSpec const& spec) {
    VFMGR_CHECK(check_used_networks(desired, pf.info.pci, spec));
    auto const now = desired.pfs.find(pf.info.pci);
    for (auto const& network : spec.networks) {
        if (pf.info.link_layer == LinkLayer::infiniband && network.vlan)
            return fail(Problem::unsupported,
                        fmt::format("network {} asks for VLAN {}, but {} is an InfiniBand PF",
                                    network.name, *network.vlan, display_name(pf.info)),
                        "InfiniBand uses partitions (P_Keys) instead of VLANs: leave the VLAN out");
        auto const* before =
            now == desired.pfs.end() ? nullptr : find_network(now->second.spec, network.name);
        // An unchanged network was checked when it was set; its own interface is up by now.
        if (before && *before == network) continue;
        VFMGR_CHECK(require_own_interface(pf.info, network));
        VFMGR_CHECK(check_routes(host, pf, network));
        VFMGR_CHECK(check_other_networks(desired, pf.info.pci, network));
    }
    return {};
}

Plan count_steps(PfState const& pf, std::uint16_t count, PfSpec const& spec) {
    Plan plan;
    auto const& info = pf.info;
    if (info.num_vfs > 0)
        plan.blast_radius.push_back(fmt::format("all {} VFs of {} are removed{}", info.num_vfs,
                                                display_name(info), count ? " and recreated" : ""));
    plan.steps.emplace_back(SetNumVfs{info.pci, count});
    if (!spec.vf_driver || count == 0) return plan;
    BindVfs bind{info.pci, std::vector<std::uint16_t>(count), spec.vf_driver};
    std::iota(bind.vfs.begin(), bind.vfs.end(), std::uint16_t{0});
    plan.steps.emplace_back(std::move(bind));
    return plan;
}

}  // namespace

Result<Plan> plan_pf(HostView const& host, DesiredState const& desired, PciAddress const& pf,
                     PfSpec const& spec) {
    VFMGR_CHECK(require_same_pf(host, desired, pf));
    VFMGR_TRY(PfState const* state, readable_pf(host, pf));
    VFMGR_CHECK(check_networks(host, desired, *state, spec));
    Plan plan;
    if (spec.mode == PfMode::observe) {
        if (!attachments_on(desired, pf, "").empty())
            return fail(Problem::conflict,
                        fmt::format("{} has VFs attached to VMs and can't be set to mode observe",
                                    display_name(state->info)),
                        "detach them first");
        plan.notes.push_back(fmt::format("{} is only observed: nothing is changed on it",
                                         display_name(state->info)));
        return plan;
    }
    if (spec.num_vfs && *spec.num_vfs != state->info.num_vfs) {
        VFMGR_CHECK(check_count(host, desired, *state, *spec.num_vfs));
        VFMGR_CHECK(require_free_pci(host));
        return count_steps(*state, *spec.num_vfs, spec);
    }
    if (spec.vf_driver && host.hypervisor.stale)
        plan.notes.push_back(
            fmt::format("VFs keep their drivers: libvirt can't report which are in use: {}",
                        host.hypervisor.stale_reason));
    else if (auto bind = bind_unused(host, desired, *state, spec))
        plan.steps.emplace_back(std::move(*bind));
    return plan;
}

}  // namespace vfmgr
