// SPDX-License-Identifier: Apache-2.0
#include "service/guest/access.hpp"

#include <fmt/format.h>

#include "service/guest/identity.hpp"
#include "vfmgr/plan/step.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

GuestAttachment for_guest(Attachment const& lease, Network const& network,
                          std::uint16_t echo_port) {
    GuestAttachment attachment;
    attachment.attachment = lease.id;
    attachment.mac = *lease.settings.mac;
    attachment.address = *lease.address;
    attachment.prefix_length = network.prefix.length;
    attachment.mtu = network.mtu;
    attachment.rdma = network.rdma;
    attachment.dscp = network.dscp;
    attachment.responder = network.host_address;
    attachment.echo_port = echo_port;
    return attachment;
}

verify::SessionPermit permit(Attachment const& lease, Network const& network,
                             PendingRun const& run) {
    verify::SessionPermit permit;
    permit.attachment = lease.id;
    permit.run = run.run;
    permit.nonce = run.nonce;
    permit.vf_mac = *lease.settings.mac;
    permit.peer_address = *lease.address;
    permit.host_address = network.host_address;
    permit.mtu = network.mtu;
    permit.rdma = network.rdma;
    permit.dscp = network.dscp;
    permit.path = TestPath::internal_switch;
    permit.profile = run.profile;
    permit.vf_tx_rate_mbps = lease.settings.max_tx_rate_mbps.value_or(0);
    permit.vm = lease.vm_uuid;
    return permit;
}

// In place of this host, another one answers this run.
void answered_elsewhere(RemoteEnd const& remote, GuestAttachment& attachment,
                        verify::SessionPermit& permit) {
    attachment.responder = remote.info.address;
    attachment.echo_port = remote.info.echo_port;
    permit.host_address = remote.info.address;
    permit.host_netdev.clear();
    permit.path = remote.path;
}

void add_run(GuestAccess& access, GuestAttachment& attachment, verify::SessionPermit permit,
             PendingRun const& run) {
    attachment.run = run.run;
    attachment.nonce = run.nonce;
    attachment.profile = run.profile;
    if (run.remote) {
        answered_elsewhere(*run.remote, attachment, permit);
        access.remotes[run.run] = run.remote->target;
    }
    access.permits.push_back(std::move(permit));
}

}  // namespace

Result<GuestAccess> guest_access(Snapshot const& now, VmIdentity const& vm,
                                 std::uint16_t echo_port) {
    // While libvirt can't be asked, the VM counts as running: its connection is still open.
    auto const& vms = now.host->hypervisor;
    if (!vms.stale && !find_life(vms, vm))
        return fail(Problem::not_found, fmt::format("VM {} has stopped", vm.name),
                    "ask again when it runs");
    GuestAccess access;
    for (auto const& [id, lease] : now.desired->attachments) {
        // While it is made or taken back the VF is not the guest's to configure.
        bool const mine = lease.vm_uuid == vm.uuid && lease.state == AttachmentState::attached;
        if (!mine || !lease.spec.network || !lease.address || !lease.settings.mac) continue;
        auto const pf = now.desired->pfs.find(lease.vf.pf);
        if (pf == now.desired->pfs.end()) continue;
        auto const* network = find_network(pf->second.spec, *lease.spec.network);
        if (!network) continue;
        auto attachment = for_guest(lease, *network, echo_port);
        auto const run = now.runs->find(id);
        auto const* leg = find_leg(*now.host, LegId{lease.vf.pf, network->vlan});
        if (run != now.runs->end() && (leg || run->second.remote)) {
            auto allowed = permit(lease, *network, run->second);
            if (leg) allowed.host_netdev = leg->ifname;
            add_run(access, attachment, std::move(allowed), run->second);
        }
        access.attachments.push_back(std::move(attachment));
    }
    return access;
}

Result<verify::SessionPermit> stock_permit(Snapshot const& now, std::string const& attachment) {
    auto const found = now.desired->attachments.find(attachment);
    if (found == now.desired->attachments.end())
        return fail(Problem::not_found, fmt::format("there is no attachment {}", attachment),
                    "GET /v1/attachments lists those of this host");
    auto const& lease = found->second;
    if (lease.state != AttachmentState::attached)
        return fail(
            Problem::conflict,
            fmt::format("attachment {} is {}, not attached", attachment, enum_name(lease.state)),
            "wait until its operation has ended");
    auto const pf = now.desired->pfs.find(lease.vf.pf);
    auto const* network = lease.spec.network && pf != now.desired->pfs.end()
                              ? find_network(pf->second.spec, *lease.spec.network)
                              : nullptr;
    auto const* leg = network ? find_leg(*now.host, LegId{lease.vf.pf, network->vlan}) : nullptr;
    if (!leg || !lease.address || !lease.settings.mac)
        return fail(Problem::conflict,
                    fmt::format("attachment {} has no network, so the host has no address there",
                                attachment),
                    "attach it with a network");
    auto allowed = permit(lease, *network, {});
    allowed.host_netdev = leg->ifname;
    return allowed;
}

void explain_failure(Snapshot const& now, Verification& verification) {
    if (verification.verdict != Verdict::fail) return;
    auto const lease = now.desired->attachments.find(verification.attachment);
    if (lease == now.desired->attachments.end()) return;
    auto const* vf = find_vf(*now.host, lease->second.vf);
    auto const& wanted = lease->second.settings;
    if (!vf || holds(wanted, vf->settings)) return;
    auto const lent = differing(wanted, vf->settings);
    auto const found = only_members_of(lent, vf->settings);
    if (empty(found)) return;  // the driver does not report them
    verification.detail += fmt::format("; on the host VF {} of {} has {}, and was lent with {}",
                                       lease->second.vf.index, to_string(lease->second.vf.pf),
                                       settings_sentence(found), settings_sentence(lent));
    verification.remedy = fmt::format(
        "somebody changed the VF: detach attachment {} and attach it again, or put it back with ip "
        "link set … vf {}",
        verification.attachment, lease->second.vf.index);
}

}  // namespace vfmgr
