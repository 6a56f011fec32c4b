// SPDX-License-Identifier: Apache-2.0
#include "service/guest/access.hpp"

#include <fmt/format.h>

#include "service/guest/identity.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {
namespace {

GuestAttachment for_guest(Attachment const& attachment, CarriedNetwork const& carried) {
    auto const& [network, host_address] = carried;
    GuestAttachment configured;
    configured.attachment = attachment.id;
    configured.mac = attachment.settings.mac;
    if (!configured.mac) {
        configured.guid = attachment.settings.port_guid;
        configured.pkey = network->pkey;
    }
    configured.address = *attachment.address;
    configured.prefix_length = network->prefix.length;
    configured.mtu = network->mtu;
    configured.rdma = network->rdma;
    configured.dscp = network->dscp;
    configured.responder = host_address;
    configured.echo_port = responder_echo_port;
    return configured;
}

// `interface`: the host's into the network; null if another host answers the run.
verify::SessionPermit permit(Snapshot const& now, Attachment const& attachment,
                             CarriedNetwork const& carried, HostInterface const* interface,
                             PendingRun const& run) {
    auto const& [network, host_address] = carried;
    verify::SessionPermit permit;
    permit.attachment = attachment.id;
    permit.run = run.run;
    permit.nonce = run.nonce;
    permit.vf_mac = attachment.settings.mac.value_or(MacAddress{});
    if (!attachment.settings.mac) {
        permit.vf_guid = attachment.settings.port_guid;
        permit.pkey = network->pkey;
        if (auto const* const pf = find_pf(*now.host, attachment.vf.pf))
            permit.host_guid = pf->info.port_guid;
    }
    permit.peer_address = *attachment.address;
    permit.host_address = host_address;
    permit.mtu = network->mtu;
    permit.rdma = network->rdma;
    permit.dscp = network->dscp;
    permit.path = TestPath::internal_switch;
    permit.profile = run.profile;
    permit.vf_tx_rate_mbps = attachment.settings.max_tx_rate_mbps.value_or(0);
    permit.vm = guest_key(attachment);
    if (interface) permit.host_netdev = interface->ifname;
    return permit;
}

// Lets another host answer this run instead of this host.
void answered_elsewhere(RemoteEnd const& remote, GuestAttachment& configured,
                        verify::SessionPermit& permit) {
    configured.responder = remote.info.address;
    configured.echo_port = remote.info.echo_port;
    permit.host_address = remote.info.address;
    permit.host_netdev.clear();
    permit.path = remote.path;
}

void add_run(GuestAccess& access, GuestAttachment& configured, verify::SessionPermit permit,
             PendingRun const& run) {
    configured.run = run.run;
    configured.nonce = run.nonce;
    configured.profile = run.profile;
    if (run.remote) {
        answered_elsewhere(*run.remote, configured, permit);
        access.remotes[run.run] = run.remote->target;
    }
    access.permits.push_back(std::move(permit));
}

void add_attachment(GuestAccess& access, Snapshot const& now, Attachment const& attachment) {
    // During attach and detach the VF is not the guest's to configure.
    auto const carried = network_of(now.desired->networks, attachment);
    if (attachment.state != AttachmentState::attached || !carried || !attachment.address ||
        !(attachment.settings.mac || attachment.settings.port_guid))
        return;
    auto configured = for_guest(attachment, *carried);
    auto const run = now.runs->find(attachment.id);
    auto const* const interface =
        find_interface(*now.host, InterfaceId{attachment.vf.pf, carried->network->vlan});
    if (run != now.runs->end() && (interface || run->second.remote))
        add_run(access, configured, permit(now, attachment, *carried, interface, run->second),
                run->second);
    // The tools' own protocols are served on Ethernet only.
    if (interface && configured.mac)
        access.interop.push_back(permit(now, attachment, *carried, interface, {}));
    access.attachments.push_back(std::move(configured));
}

// Its life is the attachment's: it is the same guest after a reboot of its VM.
std::optional<GuestVm> guest_on_tcp(Snapshot const& now, Attachment const& attachment) {
    auto const carried = network_of(now.desired->networks, attachment);
    if (!is_on_tcp(attachment.spec) || attachment.state != AttachmentState::attached || !carried ||
        !attachment.address || !attachment.settings.mac)
        return std::nullopt;
    auto const* const interface =
        find_interface(*now.host, InterfaceId{attachment.vf.pf, carried->network->vlan});
    if (!interface) return std::nullopt;
    TcpGuest tcp{interface->ifname, carried->host_address, *attachment.address};
    if (auto const keys = now.desired->guest_keys.find(attachment.id);
        keys != now.desired->guest_keys.end())
        tcp.keys = keys->second.keys;
    return GuestVm{{guest_key(attachment), attachment.vm, 0}, 0, std::move(tcp)};
}

}  // namespace

Enrolment enrolment_of(Attachment const& attachment, CarriedNetwork const& carried) {
    Enrolment enrolment;
    enrolment.attachment = for_guest(attachment, carried);
    return enrolment;
}

std::map<std::string, GuestVm> guest_vms(Snapshot const& now) {
    std::map<std::string, GuestVm> vms;
    for (auto const& [uuid, vm] : now.host->hypervisor.vms)
        if (vm.vsock_cid && vm.start_id) vms[uuid] = {{uuid, vm.name, *vm.start_id}, *vm.vsock_cid};
    for (auto const& [id, attachment] : now.desired->attachments)
        if (auto guest = guest_on_tcp(now, attachment))
            vms.insert_or_assign(guest->vm.uuid, std::move(*guest));
    for (auto const& [id, attachment] : now.desired->attachments)
        if (auto const vm = vms.find(guest_key(attachment)); vm != vms.end())
            add_attachment(vm->second.access, now, attachment);
    return vms;
}

Result<verify::SessionPermit> interop_permit(Snapshot const& now, std::string const& id) {
    auto const found = now.desired->attachments.find(id);
    if (found == now.desired->attachments.end())
        return fail(Problem::not_found, fmt::format("there is no attachment {}", id),
                    "GET /v1/attachments lists those of this host");
    auto const& attachment = found->second;
    if (attachment.state != AttachmentState::attached)
        return fail(
            Problem::conflict,
            fmt::format("attachment {} is {}, not attached", id, enum_name(attachment.state)),
            "wait until its operation has ended");
    auto const carried = network_of(now.desired->networks, attachment);
    auto const* const interface =
        carried ? find_interface(*now.host, InterfaceId{attachment.vf.pf, carried->network->vlan})
                : nullptr;
    if (!interface || !attachment.address || !attachment.settings.mac)
        return fail(
            Problem::conflict,
            fmt::format("attachment {} has no network, so the host has no address to serve it from",
                        id),
            "attach it with a network");
    return permit(now, attachment, *carried, interface, {});
}

void explain_failure(Snapshot const& now, Verification& verification) {
    if (verification.verdict != Verdict::fail) return;
    auto const attachment = now.desired->attachments.find(verification.attachment);
    if (attachment == now.desired->attachments.end()) return;
    auto const* vf = find_vf(*now.host, attachment->second.vf);
    auto const& requested = attachment->second.settings;
    if (!vf || holds(requested, vf->settings)) return;
    auto const attached = differing(requested, vf->settings);
    auto const found = only_members_of(attached, vf->settings);
    if (empty(found)) return;  // the driver does not report them
    verification.detail += fmt::format(
        "; on the host, VF {} of {} has {}, but was attached with {}", attachment->second.vf.index,
        to_string(attachment->second.vf.pf), settings_sentence(found), settings_sentence(attached));
    verification.remedy = fmt::format(
        "another program changed the VF: detach attachment {} and attach it again, or restore the "
        "settings with ip link set … vf {}",
        verification.attachment, attachment->second.vf.index);
}

}  // namespace vfmgr
