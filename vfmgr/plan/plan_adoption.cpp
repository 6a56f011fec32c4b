// SPDX-License-Identifier: Apache-2.0
// Adoption: a VF that somebody else plugged into a VM becomes an attachment as it is. Pure.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "vfmgr/plan/attach_request.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/fleet_identities.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {
namespace {

Result<void> require_hostdev(VmInfo const& vm, PciAddress const& pci) {
    if (!names(vm, pci)) {
        std::vector<std::string> has;
        for (auto const* const part : {&vm.live, &vm.config})
            for (auto const& hostdev : *part)
                if (std::ranges::find(has, to_string(hostdev.pci)) == has.end())
                    has.push_back(to_string(hostdev.pci));
        return fail(Problem::not_found,
                    fmt::format("VM {} has no <hostdev> at {}: it has {}", vm.name, to_string(pci),
                                has.empty() ? "none" : fmt::format("{}", fmt::join(has, ", "))),
                    "name the device by its address on the host, as in virsh dumpxml");
    }
    if (std::ranges::find(vm.interfaces, pci, &VmInterface::pci) == vm.interfaces.end()) return {};
    return fail(
        Problem::unsupported,
        fmt::format("VM {} has {} as <interface type='hostdev'>, whose MAC and VLAN libvirt "
                    "sets and restores",
                    vm.name, to_string(pci)),
        fmt::format("detach it there (virsh detach-interface) and give the VM a VF: vfctl "
                    "attach {}",
                    vm.name));
}

Result<VfId> vf_at(HostView const& host, PciAddress const& pci) {
    for (auto const& [address, pf] : host.kernel.pfs)
        for (auto const& vf : pf.vfs)
            if (vf.pci == pci) return VfId{address, vf.index};
    return fail(Problem::unsupported,
                fmt::format("{} is no VF of a NIC of this host", to_string(pci)),
                "vfctl vf list shows the VFs with their addresses");
}

// Who else claims the VF.
Result<void> check_claims(HostView const& host, DesiredState const& desired, VmInfo const& vm,
                          VfId const& vf, PciAddress const& pci) {
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf == vf)
            return fail(
                Problem::conflict,
                fmt::format("VF {} is vfmgr's already: it is attached to VM {} (attachment "
                            "{})",
                            to_string(vf), attachment.vm, id),
                fmt::format("no action is needed; to see it: vfctl attachment show {}", id));
    if (desired.quarantine.contains(vf))
        return fail(Problem::conflict, fmt::format("VF {} is in quarantine", to_string(vf)),
                    fmt::format("detach it from VM {}, then: vfctl vf lift-quarantine {} {}",
                                vm.name, to_string(vf.pf), vf.index));
    for (auto const& [name, reservation] : desired.reservations)
        if (std::ranges::find(reservation.vfs, vf) != reservation.vfs.end())
            return fail(Problem::conflict,
                        fmt::format("reservation {} keeps VF {}", name, to_string(vf)),
                        fmt::format("release it: vfctl reservation release {}", name));
    for (auto const& [uuid, other] : host.hypervisor.vms)
        if (uuid != vm.uuid && names(other, pci))
            return fail(Problem::vf_in_use,
                        fmt::format("VF {} ({}) is in the XML of VM {}, too", to_string(vf),
                                    to_string(pci), other.name),
                        fmt::format("take it out of one of both: virsh edit {}", other.name));
    return {};
}

// What the host requests of a VF in this network. It is not set here: the VM uses the VF.
Result<void> check_fit(AttachRequest const& ask, VfId const& vf, VfSpec const& has) {
    if (!ask.network) return {};
    auto const refused = [&](std::string const& what, std::string const& command) {
        return fail(Problem::conflict,
                    fmt::format("VF {} of VM {} {}", to_string(vf), ask.vm.name, what),
                    fmt::format("adopt it without a network; or take it out of the VM, type: ip "
                                "link set {} vf {} {}, and plug it in again",
                                ask.pf.info.ifname, vf.index, command));
    };
    auto const vlan = ask.network->vlan.value_or(0);
    if (has.vlan.value_or(Vlan{}).id != vlan)
        return refused(
            fmt::format("has VLAN {}, and network {} is {}", has.vlan.value_or(Vlan{}).id,
                        ask.network->name, vlan ? fmt::format("VLAN {}", vlan) : "untagged"),
            fmt::format("vlan {}", vlan));
    if (ask.pf.info.link_layer == LinkLayer::infiniband) {
        if (has.port_guid) return {};
        return refused("has no port GUID of the host's, by which network traffic is known as its",
                       "port_guid GUID");
    }
    if (!has.mac)
        return refused("has no MAC of the host's: the VM chose its own, which nothing here knows",
                       "mac MAC");
    if (is_closed_by_mac(ask) && (has.spoofchk != true || has.trust == true))
        return refused(fmt::format("may send from other MACs, and the host is closed to it by its "
                                   "MAC on network {}",
                                   ask.network->name),
                       "spoofchk on trust off");
    return {};
}

// What somebody has set on the VF; what a new VF has, nobody requested, except where it decides
// what the VM may send. The zero MAC is none: the VM then chooses its own at each load of its
// driver.
VfSpec settings_set_on(VfState const& vf) {
    auto settings = differing(vf.settings, as_made());
    settings.vlan = vf.settings.vlan;
    settings.spoofchk = vf.settings.spoofchk;
    settings.trust = vf.settings.trust;
    settings.query_rss.reset();
    settings.msix_vectors.reset();
    settings.roce.reset();
    return settings;
}

// Two VFs with one MAC lose frames, whoever set it.
Result<void> check_own_mac(AttachRequest const& ask, Attachment const& adopted) {
    auto const& mac = adopted.settings.mac;
    if (!mac) return {};
    auto unique = check_unique(ask.host, ask.desired, adopted.vf, ask.vm.uuid, *mac);
    if (!unique)
        unique.error().remedy = fmt::format(
            "take the VF out of the VM, type: ip link set {} vf {} mac MAC, and plug it in again",
            ask.pf.info.ifname, adopted.vf.index);
    return unique;
}

// The VM may have its address for as long as its VF: a fleet that has not given it can't take it.
Result<IpAddress> address_of_adopted(AttachRequest const& ask) {
    if (!ask.spec.address) return choose_address(ask.desired, *ask.network, {});
    VFMGR_CHECK(check_unique(ask.desired, *ask.network, *ask.spec.address));
    return *ask.spec.address;
}

// A device with our name is from a time that this store does not know, and so are the host's
// address and SoftRoCE device that go with it: they were not there before vfmgr.
PfBase base_before(AttachRequest const& ask, PciAddress const& pci) {
    auto base = base_of(ask.pf);
    auto const has_ours = [&](std::vector<VmHostdev> const& hostdevs) {
        auto const* const hostdev = find_hostdev(hostdevs, pci);
        return hostdev && is_ours(*hostdev);
    };
    if (!has_ours(ask.vm.live) && !has_ours(ask.vm.config)) return base;
    std::erase_if(base.addresses, [&](IpAddress const& address) {
        return std::ranges::any_of(ask.desired.networks, [&](auto const& each) {
            auto const* const host = host_address_on(each.second.network, ask.pf.info.pci);
            return host && *host == address;
        });
    });
    if (ask.pf.info.rdma_driver == "rxe") base.rdma = false;
    return base;
}

void add_notes(Plan& plan, AttachRequest const& ask, Attachment const& attachment) {
    auto const& pci = attachment.vf_pci;
    auto const* const live = find_hostdev(ask.vm.live, pci);
    if (attachment.live)
        plan.notes.push_back(fmt::format("VM {} keeps VF {} as it is: nothing is unplugged",
                                         ask.vm.name, to_string(attachment.vf)));
    if (live && live->managed && attachment.config)
        plan.notes.push_back(
            "when the VM is shut off, libvirt binds the VF to the host's driver once more "
            "(managed='yes'), and vfmgr binds it to VFIO again: only then can the VM start");
    if (!attachment.config)
        plan.notes.push_back(
            fmt::format("the persistent XML of VM {} does not have it, or there is none: the VM "
                        "has it until it stops",
                        ask.vm.name));
    std::ranges::move(foreign_identities(ask.desired, attachment), std::back_inserter(plan.notes));
    if (!attachment.settings.mac && ask.pf.info.link_layer != LinkLayer::infiniband)
        plan.notes.push_back("the host has set no MAC on it: the VM chooses its own");
}

void steps_of_adoption(Plan& plan, AttachRequest const& ask, Attachment const& attachment,
                       VfState const& vf) {
    auto const& [pf, index] = attachment.vf;
    if (vf.driver != attachment.driver) {
        if (vf.driver) plan.steps.emplace_back(BindVfs{pf, {index}, std::nullopt});
        plan.steps.emplace_back(BindVfs{pf, {index}, attachment.driver});
    }
    plan.steps.emplace_back(MarkHostdev{ask.vm.uuid, attachment.id, attachment.vf, vf.pci,
                                        attachment.config, hostdev_alias(attachment.id), false,
                                        ask.vm.name});
    if (ask.spec.verify == VerifyMode::required)
        plan.steps.emplace_back(AwaitVerification{attachment.id, ask.spec.verify_timeout_seconds});
}

Result<AttachmentPlan> adopt(AttachRequest const& ask, DesiredPf const& managed,
                             Attachment attachment, VfState const& vf) {
    AttachmentPlan result{
        std::move(attachment), managed.base ? *managed.base : base_before(ask, vf.pci), {}};
    auto& adopted = result.attachment;
    adopted.live = is_running(ask.vm) && find_hostdev(ask.vm.live, vf.pci);
    adopted.config = find_hostdev(ask.vm.config, vf.pci) != nullptr;
    if (!adopted.live && !vf.holders.empty())
        return fail(
            Problem::vf_in_use,
            fmt::format("VF {} is held open by {} (pid {}), and VM {} does not run with it",
                        to_string(adopted.vf), vf.holders[0].comm, vf.holders[0].pid, ask.vm.name),
            "end that process first");
    adopted.driver = vf.driver && names_vfio_driver(*vf.driver)
                         ? *vf.driver
                         : choose_vfio_driver(ask, result.plan);
    adopted.settings = settings_set_on(vf);
    VFMGR_CHECK(check_own_mac(ask, adopted));
    VFMGR_CHECK(check_fit(ask, adopted.vf, adopted.settings));
    VFMGR_CHECK(check_verification(ask, adopted));
    VFMGR_CHECK(check_network(ask));
    if (ask.network) {
        VFMGR_TRY(adopted.address, address_of_adopted(ask));
        if (!ask.spec.address)
            result.plan.notes.push_back(
                fmt::format("address {} was chosen: none was given", to_string(*adopted.address)));
    }
    auto attachments = attachments_on(ask.desired, ask.pf.info.pci, adopted.id);
    attachments.push_back(adopted);
    result.plan.steps = links_up(
        ask.pf, desired_links(ask.pf.info.pci, ask.desired.networks, result.base, attachments),
        result.base);
    steps_of_adoption(result.plan, ask, adopted, vf);
    await_carrier(result.plan.steps);
    add_notes(result.plan, ask, adopted);
    return result;
}

}  // namespace

std::optional<std::string> id_of_adopted(HostView const& host, DesiredState const& desired,
                                         AttachmentSpec const& spec) {
    auto const* const vm = spec.adopt ? find_vm(host, spec.vm) : nullptr;
    if (!vm) return std::nullopt;
    for (auto const* const part : {&vm->live, &vm->config}) {
        auto const* const hostdev = find_hostdev(*part, *spec.adopt);
        if (!hostdev || !is_ours(*hostdev)) continue;
        auto id = hostdev->alias->substr(hostdev_alias({}).size());
        bool const taken = desired.attachments.contains(id) ||
                           std::ranges::any_of(desired.quarantine, [&](auto const& one) {
                               return one.second.attachment.id == id;
                           });
        if (is_attachment_id(id) && !taken) return id;
    }
    return std::nullopt;
}

Result<AttachmentPlan> plan_adoption(HostView const& host, DesiredState const& desired,
                                     std::string const& id, AttachmentSpec const& spec) {
    auto const& pci = *spec.adopt;
    VFMGR_TRY(VmInfo const* vm, readable_vm(host, spec.vm));
    VFMGR_CHECK(require_hostdev(*vm, pci));
    VFMGR_TRY(auto const id_of_vf, vf_at(host, pci));
    VFMGR_CHECK(require_same_pf(host, desired, id_of_vf.pf));
    VFMGR_TRY(PfState const* pf, readable_pf(host, id_of_vf.pf));
    VFMGR_TRY(DesiredPf const* managed, managed_pf(desired, *pf));
    VFMGR_CHECK(check_claims(host, desired, *vm, id_of_vf, pci));
    VFMGR_TRY(auto const request, resolved(desired, spec));
    VFMGR_TRY(Network const* network, named_network(*pf, desired.networks, spec));
    if (network) VFMGR_CHECK(require_own_interface(pf->info, *network));
    Attachment attachment;
    attachment.id = id;
    attachment.spec = spec;
    attachment.vf = id_of_vf;
    attachment.vf_pci = pci;
    set_receiver(attachment, *vm);
    return adopt(AttachRequest{host, desired, request, spec, *pf, managed->spec, *vm, network},
                 *managed, std::move(attachment), *find_vf(host, id_of_vf));
}

}  // namespace vfmgr
