// SPDX-License-Identifier: Apache-2.0
#include "service/guest/access.hpp"

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
    attachment.responder = network.host_address;
    attachment.echo_port = echo_port;
    return attachment;
}

verify::SessionPermit permit(Attachment const& lease, Network const& network, LegState const& leg,
                             PendingRun const& run) {
    verify::SessionPermit permit;
    permit.attachment = lease.id;
    permit.run = run.run;
    permit.nonce = run.nonce;
    permit.vf_mac = *lease.settings.mac;
    permit.peer_address = *lease.address;
    permit.host_address = network.host_address;
    permit.host_netdev = leg.ifname;
    permit.mtu = network.mtu;
    permit.rdma = network.rdma;
    permit.profile = run.profile;
    return permit;
}

}  // namespace

GuestAccess guest_access(Snapshot const& now, std::string const& vm_uuid, std::uint16_t echo_port) {
    GuestAccess access;
    for (auto const& [id, lease] : now.desired->attachments) {
        // While it is made or taken back the VF is not the guest's to configure.
        bool const mine = lease.vm_uuid == vm_uuid && lease.state == AttachmentState::attached;
        if (!mine || !lease.spec.network || !lease.address || !lease.settings.mac) continue;
        auto const pf = now.desired->pfs.find(lease.vf.pf);
        if (pf == now.desired->pfs.end()) continue;
        auto const* network = find_network(pf->second.spec, *lease.spec.network);
        if (!network) continue;
        auto attachment = for_guest(lease, *network, echo_port);
        auto const run = now.runs->find(id);
        auto const* leg = find_leg(*now.host, LegId{lease.vf.pf, network->vlan});
        if (run != now.runs->end() && leg) {
            attachment.run = run->second.run;
            attachment.nonce = run->second.nonce;
            attachment.profile = run->second.profile;
            access.permits.push_back(permit(lease, *network, *leg, run->second));
        }
        access.attachments.push_back(std::move(attachment));
    }
    return access;
}

}  // namespace vfmgr
