// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "vfmgr/plan/attach_request.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/near.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/schedule.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {

Result<DesiredPf const*> managed_pf(DesiredState const& desired, PfState const& pf) {
    auto it = desired.pfs.find(pf.info.pci);
    if (it != desired.pfs.end() && it->second.spec.mode != PfMode::observe) return &it->second;
    return fail(
        Problem::conflict,
        fmt::format("{} ({}) is only observed, so its VFs can't be attached", display_name(pf.info),
                    to_string(pf.info.pci)),
        fmt::format("manage it first: vfctl pf set {} --mode manage", to_string(pf.info.pci)));
}

Result<Network const*> named_network(PfState const& pf, Networks const& networks,
                                     AttachmentSpec const& spec) {
    if (!spec.network) return nullptr;
    auto const* const network = find_network(networks, *spec.network);  // resolved() found it
    if (host_address_on(*network, pf.info.pci)) return network;
    return fail(Problem::not_found,
                fmt::format("{} does not carry network {}", display_name(pf.info), network->name),
                fmt::format("add it, with an address for the host: vfctl network set {} --pf "
                            "{}=ADDRESS",
                            network->name, to_string(pf.info.pci)));
}

namespace {

// A VLAN device that another program made is used as it is, or not at all.
Result<void> check_interface(AttachRequest const& ask) {
    if (!ask.network || !ask.network->vlan) return {};
    auto const* interface =
        find_interface(ask.host, InterfaceId{ask.pf.info.pci, ask.network->vlan});
    if (!interface || interface->ours || (interface->up && interface->mtu >= ask.network->mtu))
        return {};
    return fail(Problem::conflict,
                fmt::format("{}, which vfmgr did not create, is {} with MTU {}; network {} needs "
                            "it up with MTU {}",
                            interface->ifname, interface->up ? "up" : "down", interface->mtu,
                            ask.network->name, ask.network->mtu),
                fmt::format("ip link set {0} up mtu {1}, or remove it: vfmgr creates its own",
                            interface->ifname, ask.network->mtu));
}

// Suggests how an admin opens the host to the VM deliberately: outside of vfmgr's networks nothing
// is filtered.
std::string open_it_knowingly(AttachRequest const& ask) {
    auto const& settings = ask.spec.settings;
    return fmt::format(
        "or attach without a network, which leaves the host open to the VM: vfctl attach {} --pf "
        "{}{}{}{}",
        ask.vm.name, to_string(ask.pf.info.pci),
        ask.network->vlan ? fmt::format(" --vlan {}", *ask.network->vlan) : "",
        settings.spoofchk == false ? " --spoofchk off" : "",
        settings.trust == true ? " --trust on" : "");
}

Result<void> check_listeners(AttachRequest const& ask) {
    if (!ask.network) return {};
    auto const reached = reached_listeners(ask.pf, ask.desired.networks, *ask.network);
    if (reached.empty()) return {};
    auto const& first = reached.front();
    return fail(Problem::conflict,
                fmt::format("{}, and VM {} would reach it on network {}: nftables sees one port "
                            "for all of RDMA CM",
                            sentence(first, ask.pf.info), ask.vm.name, ask.network->name),
                fmt::format("stop it, or have it listen only on an address of another interface "
                            "than {} (rdma resource show cm_id lists the listeners); {}",
                            display_name(ask.pf.info), open_it_knowingly(ask)));
}

// Every InfiniBand attachment has GUIDs of its own. A VF may hold those of its previous attachment,
// which mlx5 gives to recreated VFs, or none, and without GUIDs rdma_cm does not work
// (vfmgr/kernel/KERNEL.md#infiniband-vfs).
Result<void> resolve_guids(AttachRequest const& ask, Attachment& attachment,
                           std::string_view host_seed, Plan& plan) {
    auto& settings = attachment.settings;
    auto const given = settings.port_guid ? settings.port_guid : settings.node_guid;
    auto guid = given.value_or(Guid{});
    if (!given) {
        VFMGR_TRY(guid, choose_guid(ask.host, ask.desired, attachment.vf, ask.vm.uuid, host_seed));
    }
    for (auto const& [member, name] :
         {std::pair{&VfSpec::node_guid, "node"}, std::pair{&VfSpec::port_guid, "port"}}) {
        if (settings.*member) {
            VFMGR_CHECK(check_guid(ask.host, ask.desired, attachment.vf, *(settings.*member)));
            continue;
        }
        settings.*member = guid;
        plan.notes.push_back(
            fmt::format("{} GUID {} was chosen: none was given", name, to_string(guid)));
    }
    return {};
}

// The PF's own netdev and VLAN devices made by others belong to the host. The filter there is
// closed to this VM only, by its MAC (interface_filter.cpp), not to all senders. So the VM may send
// from no other MAC.
Result<void> hold_to_its_mac(AttachRequest const& ask, VfState const& vf, VfSpec& settings,
                             Plan& plan) {
    auto const& network = *ask.network;
    auto const* const interface =
        find_interface(ask.host, InterfaceId{ask.pf.info.pci, network.vlan});
    if (!is_closed_by_mac(ask)) return {};
    auto const& may_fail = ask.spec.best_effort;
    bool const unchecked =
        settings.spoofchk == false || std::ranges::find(may_fail, "spoofchk") != may_fail.end();
    if (unchecked || settings.trust == true)
        return fail(
            Problem::conflict,
            fmt::format("network {} is on {}, where the host is closed to VM {} by its MAC; with "
                        "{} the VM could send from other MACs",
                        network.name, interface ? interface->ifname : display_name(ask.pf.info),
                        ask.vm.name, unchecked ? "a spoof check that may be off" : "trust on"),
            fmt::format("leave spoofchk and trust out; or {}; {}",
                        network.vlan
                            ? fmt::format("remove {0}, so that vfmgr creates its own and closes it "
                                          "to all: ip link del {0}",
                                          interface->ifname)
                            : fmt::format("give the network a VLAN, whose device is closed to all: "
                                          "vfctl network set {} --vlan …",
                                          network.name),
                        open_it_knowingly(ask)));
    settings.spoofchk = true;
    if (vf.settings.trust == true) settings.trust = false;
    plan.notes.push_back(
        fmt::format("the VF's spoof check is on: on {} the host is closed to the VM by its MAC",
                    interface ? interface->ifname : display_name(ask.pf.info)));
    return {};
}

}  // namespace

Result<void> check_network(AttachRequest const& ask) {
    VFMGR_CHECK(check_interface(ask));
    return check_listeners(ask);
}

bool is_closed_by_mac(AttachRequest const& ask) {
    if (!ask.network) return false;
    auto const* const interface =
        find_interface(ask.host, InterfaceId{ask.pf.info.pci, ask.network->vlan});
    return !ask.network->vlan || (interface && !interface->ours);
}

Result<void> fit_to_network(AttachRequest const& ask, VfState const& vf, VfSpec& settings,
                            Plan& plan) {
    VFMGR_CHECK(fit_to_guest_plane(ask, vf, settings, plan));
    if (!ask.network) return {};
    auto const requested = ask.network->vlan.value_or(0);
    if (settings.vlan && settings.vlan->id != requested)
        return fail(
            discreetly({Problem::conflict,
                        fmt::format("VLAN {} was requested, but network {} is {}",
                                    settings.vlan->id, ask.network->name,
                                    requested ? fmt::format("VLAN {}", requested) : "untagged"),
                        "leave the VLAN out, or name another network"}));
    if (!settings.vlan && requested) settings.vlan = Vlan{requested};
    if (ask.pf.info.link_layer == LinkLayer::infiniband) return {};
    return hold_to_its_mac(ask, vf, settings, plan);
}

namespace {

Result<void> resolve_settings(AttachRequest const& ask, VfState const& vf, Attachment& attachment,
                              std::string_view host_seed, Plan& plan) {
    auto& settings = attachment.settings;
    settings = ask.spec.settings;
    VFMGR_CHECK(fit_to_network(ask, vf, settings, plan));
    if (ask.pf.info.link_layer == LinkLayer::infiniband)
        return resolve_guids(ask, attachment, host_seed, plan);
    if (settings.mac)
        return check_mac(ask.host, ask.desired, attachment.vf, ask.vm.uuid, *settings.mac);
    VFMGR_TRY(settings.mac,
              choose_mac(ask.host, ask.desired, attachment.vf, ask.vm.uuid, host_seed));
    plan.notes.push_back(
        fmt::format("MAC {} was chosen: none was given", to_string(*settings.mac)));
    return {};
}

}  // namespace

// A variant knows its device better. It is never chosen where libvirt could not use it.
std::string choose_vfio_driver(AttachRequest const& ask, Plan& plan) {
    constexpr auto plain = "vfio-pci";
    auto const& variant = ask.pf.info.vfio_variant;
    if (!variant || ask.pf_spec.vf_driver == plain) return plain;
    if (!ask.host.hypervisor.vfio_variants)
        plan.notes.push_back(fmt::format(
            "the VF gets vfio-pci, not {}: libvirt before 10.0 knows no vfio-pci variants",
            variant->module));
    else if (!variant->driver)
        plan.notes.push_back(fmt::format(
            "the VF gets vfio-pci, not {0}: {0} is not loaded; modprobe {0}, and list it "
            "in /etc/modules-load.d for the next boot",
            variant->module));
    else
        return *variant->driver;
    return plain;
}

namespace {

void device_steps(Plan& plan, AttachRequest const& ask, Attachment const& attachment,
                  VfState const& vf) {
    // Settings reach a VF for certain only while no driver holds it: mlx5 applies an admin MAC to a
    // bound VF when its driver is bound again (vfmgr/kernel/KERNEL.md#mac-addresses).
    if (vf.driver)
        plan.steps.emplace_back(BindVfs{attachment.vf.pf, {attachment.vf.index}, std::nullopt});
    if (!empty(attachment.settings))
        plan.steps.emplace_back(ConfigureVfs{attachment.vf.pf,
                                             {VfChange{attachment.vf.index, attachment.settings}},
                                             ask.spec.best_effort});
    plan.steps.emplace_back(BindVfs{attachment.vf.pf, {attachment.vf.index}, attachment.driver});
    if (auto vsock = vsock_to_add(ask, attachment)) {
        plan.notes.push_back(fmt::format("VM {} gets a vsock device, and keeps it", ask.vm.name));
        plan.steps.emplace_back(std::move(*vsock));
    }
    if (attachment.holder)
        plan.steps.emplace_back(attach_external(attachment));
    else
        plan.steps.emplace_back(AttachHostdev{
            ask.vm.uuid, attachment.id, attachment.vf, vf.pci, attachment.settings.mac,
            attachment.live, attachment.config, ask.vm.name, ask.spec.guest_address});
    if (ask.spec.verify == VerifyMode::required)
        plan.steps.emplace_back(AwaitVerification{attachment.id, ask.spec.verify_timeout_seconds});
}

Result<AttachmentPlan> attach(AttachRequest const& ask, DesiredPf const& pf, Attachment begun,
                              std::string_view host_seed) {
    AttachmentPlan result{std::move(begun), pf.base ? *pf.base : base_of(ask.pf), {}};
    auto& attachment = result.attachment;
    VFMGR_CHECK(place(ask, attachment, result.plan));
    VFMGR_CHECK(check_verification(ask, attachment));
    VFMGR_CHECK(check_network(ask));
    VFMGR_TRY(VfState const* vf, choose_vf(ask.host, ask.desired, ask.pf, ask.request.choice()));
    attachment.vf = VfId{ask.pf.info.pci, vf->index};
    attachment.vf_pci = vf->pci;
    VFMGR_CHECK(check_group_of(ask.host, ask.desired, attachment));
    attachment.driver = choose_vfio_driver(ask, result.plan);
    VFMGR_CHECK(resolve_settings(ask, *vf, attachment, host_seed, result.plan));
    if (ask.network) {
        VFMGR_TRY(attachment.address, choose_address(ask.desired, *ask.network, ask.spec.address));
        if (!ask.spec.address)
            result.plan.notes.push_back(fmt::format("address {} was chosen: none was given",
                                                    to_string(*attachment.address)));
    }
    // Detach restores exactly this.
    attachment.baseline = only_members_of(attachment.settings, vf->settings);
    auto attachments = attachments_on(ask.desired, ask.pf.info.pci, attachment.id);
    attachments.push_back(attachment);
    result.plan.steps = links_up(
        ask.pf, desired_links(ask.pf.info.pci, ask.desired.networks, result.base, attachments),
        result.base);
    device_steps(result.plan, ask, attachment, *vf);
    await_carrier(result.plan.steps);
    return result;
}

}  // namespace

Result<AttachmentPlan> plan_on(HostView const& host, DesiredState const& desired,
                               std::string const& id, Resolved const& request,
                               PciAddress const& pci, std::string_view host_seed) {
    auto const& spec = request.spec;
    VFMGR_CHECK(require_same_pf(host, desired, pci));
    VFMGR_TRY(PfState const* pf, readable_pf(host, pci));
    VFMGR_TRY(DesiredPf const* managed, managed_pf(desired, *pf));
    VFMGR_TRY(VmInfo const vm, vm_for(host, spec));
    if (request.pool)
        if (auto const why = mismatch(request.pool->select, pf->info, &managed->spec))
            return fail(Problem::conflict,
                        fmt::format("{} is not in pool {}: it {}", display_name(pf->info),
                                    request.pool->name, *why),
                        "leave the PF out to get one of the pool, or name another pool");
    VFMGR_TRY(Network const* network, named_network(*pf, desired.networks, spec));
    if (network) VFMGR_CHECK(require_own_interface(pf->info, *network));
    Attachment attachment;
    attachment.id = id;
    attachment.spec = spec;
    set_receiver(attachment, vm);
    return attach(AttachRequest{host, desired, request, spec, *pf, managed->spec, vm, network},
                  *managed, std::move(attachment), host_seed);
}

Error none_suits(HostView const& host, DesiredState const& desired, Resolved const& request,
                 std::vector<Candidate> const& candidates, std::optional<Error> refused) {
    constexpr std::size_t named_max = 16;
    std::vector<std::string> reasons;
    for (auto const& each : candidates)
        if (reasons.size() < named_max)
            reasons.push_back(fmt::format("{} {}", to_string(each.pf), each.reason));
    auto error = std::move(refused).value_or(
        discreetly({Problem::limit_exceeded, "", "detach a VF, or create more: vfctl pf set"},
                   fmt::format("no VF is free for VM {}: {}", receiver_of(request.spec),
                               taken_vfs(host, desired, request)),
                   "detach a VF, or use another pool"));
    error.detail = fmt::format(
        "no PF has a VF for VM {}: {}", receiver_of(request.spec),
        reasons.empty() ? "this host has none" : fmt::format("{}", fmt::join(reasons, "; ")));
    return error;
}

namespace {

// Takes the best PF whose plan is not refused.
Result<AttachmentPlan> plan_on_the_best(HostView const& host, DesiredState const& desired,
                                        std::string const& id, Resolved const& request,
                                        std::string_view host_seed) {
    VFMGR_TRY(VmInfo const vm, vm_for(host, request.spec));
    auto const ranked = ranked_pfs(host, desired, request, vm.uuid);
    std::vector<Candidate> candidates;
    std::optional<AttachmentPlan> chosen;
    std::optional<Error> first;
    for (auto const& [candidate, possible] : ranked) {
        candidates.push_back(candidate);
        if (!possible || chosen) continue;
        auto planned = plan_on(host, desired, id, request, candidate.pf, host_seed);
        if (planned) {
            candidates.back().chosen = true;
            chosen = std::move(*planned);
        } else {
            candidates.back().reason = "was refused: " + planned.error().detail;
            if (!first) first = std::move(planned.error());
        }
    }
    if (!chosen) return fail(none_suits(host, desired, request, candidates, std::move(first)));
    auto const& pf = find_pf(host, chosen->attachment.vf.pf)->info;
    chosen->plan.notes.push_back(fmt::format("PF {} was chosen: none was given", display_name(pf)));
    chosen->attachment.candidates = std::move(candidates);
    return std::move(*chosen);
}

}  // namespace

Result<AttachmentPlan> plan_attachment(HostView const& host, DesiredState const& desired,
                                       std::string const& id, AttachmentSpec const& spec,
                                       std::string_view host_seed) {
    if (spec.adopt) return plan_adoption(host, desired, id, spec);
    if (spec.near) return plan_nearest(host, desired, id, spec, host_seed);
    VFMGR_TRY(auto const request, resolved(desired, spec));
    if (spec.pf) return plan_on(host, desired, id, request, *spec.pf, host_seed);
    return plan_on_the_best(host, desired, id, request, host_seed);
}

}  // namespace vfmgr
