// SPDX-License-Identifier: Apache-2.0
#include "service/guest/access.hpp"

#include <fmt/format.h>

#include "service/guest/identity.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {
namespace {

GuestAttachment for_guest(Attachment const& attachment, CarriedNetwork const& carried,
                          std::uint16_t echo_port) {
    auto const& [network, host_address] = carried;
    GuestAttachment configured;
    configured.attachment = attachment.id;
    configured.mac = *attachment.settings.mac;
    configured.address = *attachment.address;
    configured.prefix_length = network->prefix.length;
    configured.mtu = network->mtu;
    configured.rdma = network->rdma;
    configured.dscp = network->dscp;
    configured.responder = host_address;
    configured.echo_port = echo_port;
    return configured;
}

verify::SessionPermit permit(Attachment const& attachment, CarriedNetwork const& carried,
                             PendingRun const& run) {
    auto const& [network, host_address] = carried;
    verify::SessionPermit permit;
    permit.attachment = attachment.id;
    permit.run = run.run;
    permit.nonce = run.nonce;
    permit.vf_mac = *attachment.settings.mac;
    permit.peer_address = *attachment.address;
    permit.host_address = host_address;
    permit.mtu = network->mtu;
    permit.rdma = network->rdma;
    permit.dscp = network->dscp;
    permit.path = TestPath::internal_switch;
    permit.profile = run.profile;
    permit.vf_tx_rate_mbps = attachment.settings.max_tx_rate_mbps.value_or(0);
    permit.vm = attachment.vm_uuid;
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

}  // namespace

Result<GuestAccess> guest_access(Snapshot const& now, VmIdentity const& vm,
                                 std::uint16_t echo_port) {
    // While libvirt can't be queried, the VM counts as running: its connection is still open.
    auto const& vms = now.host->hypervisor;
    if (!vms.stale && !find_life(vms, vm))
        return fail(Problem::not_found, fmt::format("VM {} has stopped", vm.name),
                    "try again when it runs");
    GuestAccess access;
    for (auto const& [id, attachment] : now.desired->attachments) {
        // During attach and detach the VF is not the guest's to configure.
        bool const mine =
            attachment.vm_uuid == vm.uuid && attachment.state == AttachmentState::attached;
        auto const carried = network_of(now.desired->networks, attachment);
        if (!mine || !carried || !attachment.address || !attachment.settings.mac) continue;
        auto configured = for_guest(attachment, *carried, echo_port);
        auto const run = now.runs->find(id);
        auto const* interface =
            find_interface(*now.host, InterfaceId{attachment.vf.pf, carried->network->vlan});
        if (run != now.runs->end() && (interface || run->second.remote)) {
            auto allowed = permit(attachment, *carried, run->second);
            if (interface) allowed.host_netdev = interface->ifname;
            add_run(access, configured, std::move(allowed), run->second);
        }
        access.attachments.push_back(std::move(configured));
    }
    return access;
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
    auto allowed = permit(attachment, *carried, {});
    allowed.host_netdev = interface->ifname;
    return allowed;
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
