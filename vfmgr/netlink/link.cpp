// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/link.hpp"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <cerrno>

namespace vfmgr {
namespace {

// The kernel takes a group when it makes a device, but an alias only afterwards [src rtnetlink.c
// rtnl_create_link, do_setlink]: the group marks a device without alias as a half-made one of ours.
// "vfmg" in ASCII.
constexpr std::uint32_t our_group = 0x76666d67;

ifinfomsg link_header(int ifindex) {
    ifinfomsg header{};
    header.ifi_index = ifindex;
    return header;
}

// Leaves out statistics: they cost a read of each device's counters.
NlRequest get_request(int flags) {
    NlRequest request(RTM_GETLINK, flags);
    request.header(link_header(0));
    return request;
}

Result<void> mark_as_ours(NlSocket& socket, VlanNetdev const& vlan, Deadline deadline) {
    NlRequest request(RTM_SETLINK, 0);
    request.header(link_header(0)).put_text(IFLA_IFNAME, vlan.name);
    request.put_text(IFLA_IFALIAS, our_ifalias);
    return socket.change(request,
                         {"RTM_SETLINK " + vlan.name + " alias",
                          fmt::format("{} could not be marked as vfmgr's", vlan.name)},
                         deadline);
}

std::string change_text(NetdevChange const& change) {
    std::string text;
    if (change.mtu) text += fmt::format(" mtu {}", *change.mtu);
    if (change.up) text += *change.up ? " up" : " down";
    return text;
}

}  // namespace

bool ours(Netdev const& netdev) {
    return netdev.kind == "vlan" &&
           (netdev.alias == our_ifalias || (netdev.alias.empty() && netdev.group == our_group));
}

std::optional<Netdev> parse_netdev(ByteView payload) {
    auto const header = front_object<ifinfomsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(ifinfomsg)));
    Netdev netdev;
    netdev.name = attributes.text(IFLA_IFNAME).value_or("");
    if (netdev.name.empty() || header->ifi_index <= 0) return std::nullopt;
    netdev.ifindex = header->ifi_index;
    netdev.hardware_type = header->ifi_type;
    netdev.up = (header->ifi_flags & static_cast<unsigned>(IFF_UP)) != 0;
    netdev.carrier = attributes.value<std::uint8_t>(IFLA_CARRIER).value_or(0) != 0;
    netdev.mtu = attributes.value<std::uint32_t>(IFLA_MTU).value_or(0);
    netdev.group = attributes.value<std::uint32_t>(IFLA_GROUP).value_or(0);
    netdev.controller_ifindex = attributes.value<int>(IFLA_MASTER);
    netdev.mac = attributes.mac(IFLA_ADDRESS);
    if (netdev.hardware_type == ARPHRD_INFINIBAND)
        netdev.port_guid = attributes.port_guid(IFLA_ADDRESS);
    netdev.permanent_mac = attributes.mac(IFLA_PERM_ADDRESS);
    netdev.alias = attributes.text(IFLA_IFALIAS).value_or("");
    netdev.parent_device = attributes.text(IFLA_PARENT_DEV_NAME).value_or("");
    netdev.phys_port_name = attributes.text(IFLA_PHYS_PORT_NAME).value_or("");
    auto const info = attributes.nested(IFLA_LINKINFO);
    netdev.kind = info.text(IFLA_INFO_KIND).value_or("");
    if (netdev.kind == "vlan")
        netdev.vlan = info.nested(IFLA_INFO_DATA).value<std::uint16_t>(IFLA_VLAN_ID);
    if (netdev.kind == "ipoib")
        netdev.pkey = info.nested(IFLA_INFO_DATA).value<std::uint16_t>(IFLA_IPOIB_PKEY);
    if (!attributes.find(IFLA_LINK_NETNSID))
        netdev.parent_ifindex = attributes.value<int>(IFLA_LINK);
    return netdev;
}

Result<std::vector<Netdev>> list_netdevs(NlSocket& socket, Deadline deadline) {
    auto request = get_request(NLM_F_DUMP);
    request.put<std::uint32_t>(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    return socket.list(request, RTM_NEWLINK, "RTM_GETLINK", deadline, parse_netdev);
}

Result<Netdev> get_netdev(NlSocket& socket, std::string const& name, Deadline deadline) {
    auto request = get_request(0);
    request.put_text(IFLA_IFNAME, name);
    request.put<std::uint32_t>(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    auto const call = "RTM_GETLINK " + name;
    VFMGR_TRY(auto const reply, socket.ask(request, call, deadline));
    for (auto const& answer : reply.answers)
        if (answer.type == RTM_NEWLINK)
            if (auto netdev = parse_netdev(answer.payload)) return std::move(*netdev);
    auto error = nl_refusal(reply.ack, call, fmt::format("there is no network interface {}", name),
                            "list the interfaces: ip link");
    error.problem = Problem::not_found;
    return fail(std::move(error));
}

Result<void> change_netdev(NlSocket& socket, std::string const& netdev, NetdevChange const& change,
                           Deadline deadline) {
    auto header = link_header(change.ifindex);
    if (change.up) {
        header.ifi_change = static_cast<unsigned>(IFF_UP);
        header.ifi_flags = *change.up ? static_cast<unsigned>(IFF_UP) : 0U;
    }
    NlRequest request(RTM_SETLINK, 0);
    request.header(header);
    if (change.mtu) request.put(IFLA_MTU, *change.mtu);
    NlRefusal refusal{"RTM_SETLINK " + netdev + change_text(change),
                      fmt::format("{} could not be set to{}", netdev, change_text(change))};
    refusal.known = {{ENODEV, "check that the interface still exists: ip link"},
                     {EPERM, "run it as root, or with CAP_NET_ADMIN"}};
    if (change.mtu)
        refusal.remedy = "choose an MTU that the device and, for a VLAN device, its parent allow";
    return socket.change(request, std::move(refusal), deadline);
}

Result<void> add_vlan_netdev(NlSocket& socket, VlanNetdev const& vlan, Deadline deadline) {
    NlRequest request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    request.header(link_header(0))
        .put_text(IFLA_IFNAME, vlan.name)
        .put(IFLA_LINK, vlan.parent_ifindex)
        .put(IFLA_GROUP, our_group)
        .nest(IFLA_LINKINFO, [&](NlRequest& info) {
            info.put_text(IFLA_INFO_KIND, "vlan").nest(IFLA_INFO_DATA, [&](NlRequest& data) {
                data.put(IFLA_VLAN_ID, vlan.vlan);
            });
        });
    NlRefusal refusal{
        fmt::format("RTM_NEWLINK {} vlan {}", vlan.name, vlan.vlan),
        fmt::format("VLAN device {} (id {}) could not be created", vlan.name, vlan.vlan)};
    refusal.known = {{EOPNOTSUPP, "load the kernel module: modprobe 8021q", Problem::unsupported},
                     {EEXIST, "remove the other device or choose another VLAN", Problem::conflict}};
    VFMGR_CHECK(socket.change(request, std::move(refusal), deadline));
    return mark_as_ours(socket, vlan, deadline);
}

Result<void> delete_netdev(NlSocket& socket, Netdev const& netdev, Deadline deadline) {
    NlRequest request(RTM_DELLINK, 0);
    request.header(link_header(netdev.ifindex));
    return socket.change(
        request,
        {"RTM_DELLINK " + netdev.name, fmt::format("{} could not be removed", netdev.name)},
        deadline, {ENODEV});
}

}  // namespace vfmgr
