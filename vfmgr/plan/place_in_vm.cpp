// SPDX-License-Identifier: Apache-2.0
// What an attachment needs of the VM: a port, an address, a vsock device. Pure.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/plan/attach_request.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/schedule.hpp"

namespace vfmgr {

std::optional<AddVsock> vsock_to_add(AttachRequest const& ask, Attachment const& attachment) {
    if (!ask.spec.add_vsock.value_or(false)) return std::nullopt;
    AddVsock add{ask.vm.uuid, attachment.vf, attachment.live && !ask.vm.vsock_cid,
                 attachment.config && !ask.vm.has_vsock, ask.vm.name};
    if (!add.live && !add.config) return std::nullopt;
    return add;
}

namespace {

// libvirt gives a device of a persistent XML the root port that it needs
// (vfmgr/hypervisor/LIBVIRT.md#attaching), but plugs none into a running VM.
Result<void> find_ports(AttachRequest const& ask, Attachment& attachment, Plan& plan) {
    auto const vsock = vsock_to_add(ask, attachment);
    auto const ports = require_free_ports(ask.vm, vsock && vsock->live ? 2 : 1);
    if (ports || !ask.spec.add_ports.value_or(false)) return ports;
    if (!attachment.config)
        return fail(discreetly(
            {Problem::unsupported,
             fmt::format("VM {} has no free PCIe port, and no persistent XML is to be changed to "
                         "add one",
                         ask.vm.name),
             ask.vm.persistent ? "leave persistence at auto, or detach a device from the VM"
                               : "detach a device from the VM, or define it (virsh define)"}));
    attachment.live = false;
    plan.notes.push_back(
        fmt::format("VM {} has no free PCIe port: its persistent XML gets one with the VF, and the "
                    "VM has both from its next start",
                    ask.vm.name));
    return {};
}

Result<void> require_free_address(VmInfo const& vm, PciAddress const& address,
                                  std::vector<PciAddress> const& free, std::string_view xml) {
    constexpr std::size_t named_max = 8;
    if (std::ranges::find(free, address) != free.end()) return {};
    std::vector<std::string> others;
    for (auto const& each : free)
        if (others.size() < named_max) others.push_back(to_string(each));
    return fail(discreetly(
        {Problem::conflict,
         fmt::format("in the {} VM {} nothing can be put at {}: the address is taken, or no "
                     "hot-plug port has it",
                     xml, vm.name, to_string(address)),
         others.empty() ? "leave guest_address out: libvirt chooses"
                        : fmt::format("name one of {}, or leave guest_address out",
                                      fmt::join(others, ", "))}));
}

Result<void> check_guest_address(AttachRequest const& ask, Attachment const& attachment) {
    auto const& address = ask.spec.guest_address;
    if (!address) return {};
    if (attachment.live)
        VFMGR_CHECK(require_free_address(ask.vm, *address, ask.vm.free_live, "running"));
    if (attachment.config)
        VFMGR_CHECK(require_free_address(ask.vm, *address, ask.vm.free_config, "persistent"));
    return {};
}

}  // namespace

Result<void> place(AttachRequest const& ask, Attachment& attachment, Plan& plan) {
    if (ask.spec.holder) return {};  // libvirt does not know it
    bool const running = is_running(ask.vm);
    auto const persistence = ask.spec.persistence;
    attachment.live = running && persistence != Persistence::config;
    attachment.config = ask.vm.persistent && persistence != Persistence::live;
    if (!attachment.live && !attachment.config)
        return fail(discreetly(
            {Problem::unsupported,
             fmt::format("VM {} is {} and {}, so there is nothing to attach to with "
                         "persistence {}",
                         ask.vm.name, enum_name(ask.vm.state),
                         ask.vm.persistent ? "persistent" : "transient", enum_name(persistence)),
             running ? "leave persistence at auto" : "start the VM first"}));
    if (attachment.live) VFMGR_CHECK(find_ports(ask, attachment, plan));
    return check_guest_address(ask, attachment);
}

Result<void> fit_to_guest_plane(AttachRequest const& ask, VfState const& vf, VfSpec& settings,
                                Plan& plan) {
    if (!is_on_tcp(ask.spec)) return {};
    if (!ask.network)
        return fail(discreetly(
            {Problem::conflict,
             fmt::format("guest_plane tcp is served at the host's address in a network, and VM {} "
                         "gets the VF without one",
                         ask.vm.name),
             "attach with a network that has the host's address on this PF"}));
    if (ask.pf.info.link_layer == LinkLayer::infiniband)
        return fail(Problem::unsupported,
                    fmt::format("{} is an InfiniBand PF, and guest_plane tcp knows a guest by its "
                                "VF's MAC",
                                display_name(ask.pf.info)),
                    "leave guest_plane out: the guest then reports by its vsock device");
    auto const& may_fail = ask.spec.best_effort;
    bool const unchecked =
        settings.spoofchk == false || std::ranges::find(may_fail, "spoofchk") != may_fail.end();
    if (unchecked || settings.trust == true)
        return fail(discreetly(
            {Problem::conflict,
             fmt::format("guest_plane tcp knows VM {} by its VF's MAC; with {} it could send from "
                         "others",
                         ask.vm.name, unchecked ? "a spoof check that may be off" : "trust on"),
             "leave spoofchk and trust out, or use guest_plane vsock"}));
    if (settings.spoofchk != true)
        plan.notes.push_back("the VF's spoof check is on: guest_plane tcp knows the guest by MAC");
    settings.spoofchk = true;
    if (vf.settings.trust == true) settings.trust = false;
    return {};
}

Result<void> check_verification(AttachRequest const& ask, Attachment const& attachment) {
    if (ask.spec.verify.value_or(VerifyMode::none) == VerifyMode::none &&
        ask.spec.verify_every_seconds == 0)
        return {};
    bool const tcp = is_on_tcp(ask.spec);
    if (ask.spec.holder && !tcp) return fail(no_proof_by_external(ask.vm.name));
    if (auto never = verification_hindrance(ask.pf.info))
        return fail(Problem::unsupported, std::move(never->detail), std::move(never->remedy));
    bool const adds_vsock = ask.spec.add_vsock.value_or(false);
    if (!tcp && !ask.vm.has_vsock && !adds_vsock)
        return fail(discreetly(
            {Problem::unsupported,
             fmt::format("VM {} has no vsock device, which it needs to report", ask.vm.name),
             "attach with add_vsock or guest_plane tcp; or add <vsock model='virtio'><cid "
             "auto='yes'/></vsock> to its "
             "XML, shut it down and start it again; or attach without verification (verify none, "
             "no verify_every_seconds)"}));
    // Whether a VM without libvirt runs is not known; one that does not is found by the deadline.
    if (ask.spec.verify == VerifyMode::required && !ask.spec.holder &&
        !(attachment.live && (tcp || ask.vm.vsock_cid || adds_vsock)))
        return fail(discreetly(
            {Problem::unsupported,
             fmt::format("VM {} {}, so nothing can be verified in it now", ask.vm.name,
                         is_running(ask.vm) ? "gets the VF at its next start" : "is not running"),
             is_running(ask.vm) ? "attach with verify background"
                                : "start it, or attach with verify background"}));
    bool const rdma = ask.network && ask.network->rdma != RdmaMode::none &&
                      (ask.pf.info.rdma_device || ask.network->rdma == RdmaMode::rxe);
    if (!rdma)
        return fail(
            Problem::unsupported,
            fmt::format("{} has no RDMA device on this host, so nothing can answer the VM "
                        "on network {}",
                        display_name(ask.pf.info), ask.network ? ask.network->name : "(none)"),
            "load the card's RDMA driver, or set the network's rdma to rxe (SoftRoCE)");
    return {};
}

}  // namespace vfmgr
