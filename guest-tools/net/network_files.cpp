// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/network_files.hpp"

#include <fmt/format.h>

#include "vfmgr/netlink/source_route.hpp"

namespace vfmgr::guest {
namespace {

std::string first_line(GuestAttachment const& attachment) {
    return fmt::format("{} for attachment {}; it is removed with it.\n", network_file_mark,
                       attachment.attachment);
}

std::string with_length(GuestAttachment const& attachment) {
    return fmt::format("{}/{}", to_string(attachment.address), attachment.prefix_length);
}

bool is_v4(GuestAttachment const& attachment) {
    return attachment.address.family == IpAddress::Family::v4;
}

}  // namespace

// [Match]: the MAC is the VF's own and the only property that stays; VLAN devices and bonds on top
// of it (another Type) and the virtio NIC of a failover pair have the same one.
// [Link]: a VF without carrier must not delay a boot (systemd-networkd-wait-online).
// [Network]: keeps addresses that vf-guest set before networkd manages the netdev. Without a
// carrier, networkd would remove everything again. No other addresses: the peers know this one.
// [Route], [RoutingPolicyRule]: as vf-guest creates them (source_route.hpp); networkd removes rules
// that its files do not have, and such routes on its links.
std::string networkd_text(GuestAttachment const& attachment) {
    auto const table = source_table(attachment.address);
    return first_line(attachment) +
           fmt::format("[Match]\nMACAddress={}\nType=ether\nDriver=!virtio_net\n\n",
                       to_string(attachment.mac)) +
           fmt::format("[Link]\nMTUBytes={}\nRequiredForOnline=no\n\n", attachment.mtu) +
           fmt::format(
               "[Network]\nAddress={}\nLinkLocalAddressing={}\nIPv6AcceptRA=no\n"
               "ConfigureWithoutCarrier=yes\nKeepConfiguration=static\n\n",
               with_length(attachment), is_v4(attachment) ? "no" : "ipv6") +
           fmt::format("[Route]\nDestination={}\n{}PreferredSource={}\nTable={}\n\n",
                       to_string(network_of(attachment.address, attachment.prefix_length)),
                       is_v4(attachment) ? "Scope=link\n" : "", to_string(attachment.address),
                       table) +
           fmt::format("[RoutingPolicyRule]\nFrom={}/{}\nTable={}\nPriority={}\n",
                       to_string(attachment.address), attachment.address.bits(), table,
                       source_rule_priority);
}

// The priority is above that of profiles that NetworkManager generates for a new Ethernet device
// (-999) and of profiles for any device (0). mac-address is the permanent one, which the host sets
// for a VF.
std::string network_manager_text(GuestAttachment const& attachment) {
    auto const table = source_table(attachment.address);
    auto const* const used = is_v4(attachment) ? "ipv4" : "ipv6";
    auto const* const unused = is_v4(attachment) ? "ipv6" : "ipv4";
    return first_line(attachment) +
           fmt::format("[connection]\nid=vf-guest-{}\ntype=ethernet\nautoconnect-priority=100\n\n",
                       attachment.attachment) +
           fmt::format("[ethernet]\nmac-address={}\nmtu={}\n\n", to_string(attachment.mac),
                       attachment.mtu) +
           fmt::format(
               "[{}]\nmethod=manual\naddress1={}\nnever-default=true\nroute1={}\n"
               "route1_options=table={}\nrouting-rule1=priority {} from {} table {}\n\n",
               used, with_length(attachment),
               to_string(network_of(attachment.address, attachment.prefix_length)), table,
               source_rule_priority, to_string(attachment.address), table) +
           fmt::format("[{}]\nmethod=disabled\n", unused);
}

}  // namespace vfmgr::guest
