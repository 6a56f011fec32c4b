// SPDX-License-Identifier: Apache-2.0
// Addresses, neighbours and routes, by rtnetlink. Free functions; any thread.
#include "vfmgr/netlink/ip.hpp"

#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace vfmgr {
namespace {

NlRequest address_request(std::uint16_t type, int flags, NetdevAddress const& address) {
    ifaddrmsg header{};
    header.ifa_family = family_of(address.address);
    header.ifa_prefixlen = address.prefix_length;
    header.ifa_index = static_cast<std::uint32_t>(address.ifindex);
    header.ifa_flags = address.address.family == IpAddress::Family::v6 ? IFA_F_NODAD : 0;
    NlRequest request(type, flags);
    request.header(header).put_ip(IFA_LOCAL, address.address).put_ip(IFA_ADDRESS, address.address);
    return request;
}

std::string with_length(NetdevAddress const& address) {
    return fmt::format("{}/{}", to_string(address.address), address.prefix_length);
}

}  // namespace

std::optional<NetdevAddress> parse_address(ByteView payload) {
    auto const header = front_object<ifaddrmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(ifaddrmsg)));
    // On IPv4 point-to-point links IFA_ADDRESS is the peer's; IPv6 has IFA_LOCAL only there.
    auto address = attributes.ip(IFA_LOCAL);
    if (!address) address = attributes.ip(IFA_ADDRESS);
    if (!address || family_of(*address) != header->ifa_family ||
        header->ifa_prefixlen > address->bits())
        return std::nullopt;
    return NetdevAddress{static_cast<int>(header->ifa_index), *address, header->ifa_prefixlen};
}

Result<std::vector<NetdevAddress>> list_addresses(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETADDR, NLM_F_DUMP);
    request.header(ifaddrmsg{});  // AF_UNSPEC: every family
    return socket.list(request, RTM_NEWADDR, "RTM_GETADDR", deadline, parse_address);
}

Result<void> add_address(NlSocket& socket, NetdevAddress const& address, Deadline deadline) {
    // EEXIST: the kernel compares device, address and, on IPv4, the prefix length.
    return socket.change(address_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, address),
                         {"RTM_NEWADDR " + with_length(address),
                          fmt::format("address {} could not be added to interface {}",
                                      with_length(address), address.ifindex),
                          "check that the interface still exists and IP is enabled on it: ip link"},
                         deadline, {EEXIST});
}

Result<void> remove_address(NlSocket& socket, NetdevAddress const& address, Deadline deadline) {
    return socket.change(address_request(RTM_DELADDR, 0, address),
                         {"RTM_DELADDR " + with_length(address),
                          fmt::format("address {} could not be removed from interface {}",
                                      with_length(address), address.ifindex)},
                         deadline, {EADDRNOTAVAIL, ENODEV});
}

namespace {

NlRequest neighbour_request(std::uint16_t type, int flags, IpAddress const& address, int ifindex) {
    ndmsg header{};
    header.ndm_family = family_of(address);
    header.ndm_ifindex = ifindex;
    header.ndm_state = NUD_PERMANENT;
    NlRequest request(type, flags);
    request.header(header).put_ip(NDA_DST, address);
    return request;
}

}  // namespace

bool permanent(Neighbour const& neighbour) {
    return (neighbour.state & NUD_PERMANENT) != 0;
}

std::optional<Neighbour> parse_neighbour(ByteView payload) {
    auto const header = front_object<ndmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(ndmsg)));
    auto const address = attributes.ip(NDA_DST);
    if (!address || family_of(*address) != header->ndm_family) return std::nullopt;
    return Neighbour{header->ndm_ifindex, *address, attributes.mac(NDA_LLADDR), header->ndm_state,
                     attributes.port_guid(NDA_LLADDR)};
}

Result<std::vector<Neighbour>> list_neighbours(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETNEIGH, NLM_F_DUMP);
    request.header(ndmsg{});  // AF_UNSPEC: every family
    return socket.list(request, RTM_NEWNEIGH, "RTM_GETNEIGH", deadline, parse_neighbour);
}

Result<void> replace_neighbour(NlSocket& socket, PermanentNeighbour const& neighbour,
                               Deadline deadline) {
    auto request = neighbour_request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, neighbour.address,
                                     neighbour.ifindex);
    request.put(NDA_LLADDR, neighbour.mac.octets);
    auto const address = to_string(neighbour.address);
    auto const mac = to_string(neighbour.mac);
    return socket.change(request,
                         {fmt::format("RTM_NEWNEIGH {} {}", address, mac),
                          fmt::format("the neighbour {} at {} could not be set on interface {}",
                                      address, mac, neighbour.ifindex),
                          "check that the interface is up: ip link"},
                         deadline);
}

Result<void> remove_neighbour(NlSocket& socket, IpAddress const& address, int ifindex,
                              Deadline deadline) {
    return socket.change(neighbour_request(RTM_DELNEIGH, 0, address, ifindex),
                         {"RTM_DELNEIGH " + to_string(address),
                          fmt::format("the neighbour {} could not be removed from interface {}",
                                      to_string(address), ifindex)},
                         deadline, {ENOENT, ENODEV});
}

namespace {

NlRequest peer_request(std::uint16_t type, int flags, IpAddress const& address, int ifindex) {
    rtmsg header{};
    header.rtm_family = family_of(address);
    header.rtm_dst_len = static_cast<std::uint8_t>(address.bits());
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = our_route_protocol;
    header.rtm_scope = RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    NlRequest request(type, flags);
    request.header(header).put_ip(RTA_DST, address).put(RTA_OIF, ifindex);
    return request;
}

Result<void> explain_existing(NlSocket& socket, PeerRoute const& route, NlAck const& ack,
                              std::string const& call, Deadline deadline) {
    VFMGR_TRY(auto const routes, list_routes(socket, deadline));
    auto const found = std::find_if(routes.begin(), routes.end(), [&](IpRoute const& existing) {
        return existing.prefix.address == route.address &&
               existing.prefix.length == route.address.bits();
    });
    if (found != routes.end() && found->protocol == our_route_protocol &&
        found->ifindex == route.ifindex && found->source == route.source)
        return {};
    auto error = nl_refusal(
        ack, call, fmt::format("the host has another route to {}", to_string(route.address)),
        "remove it, or choose an address that the host does not route elsewhere: ip route");
    error.problem = Problem::conflict;
    return fail(std::move(error));
}

std::uint32_t table_of(rtmsg const& header, Attributes const& attributes) {
    return attributes.value<std::uint32_t>(RTA_TABLE).value_or(header.rtm_table);
}

}  // namespace

std::optional<IpRoute> parse_route(ByteView payload) {
    auto const header = front_object<rtmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(rtmsg)));
    if (table_of(*header, attributes) != RT_TABLE_MAIN) return std::nullopt;
    // Cached exceptions (path MTU) are not configured routes.
    if ((header->rtm_flags & RTM_F_CLONED) != 0) return std::nullopt;
    if (header->rtm_family != AF_INET && header->rtm_family != AF_INET6) return std::nullopt;
    IpRoute route;
    route.prefix.address.family =
        header->rtm_family == AF_INET ? IpAddress::Family::v4 : IpAddress::Family::v6;
    if (auto const destination = attributes.ip(RTA_DST)) route.prefix.address = *destination;
    route.prefix.length = header->rtm_dst_len;
    if (family_of(route.prefix.address) != header->rtm_family ||
        route.prefix.length > route.prefix.address.bits())
        return std::nullopt;
    // Unreachable, blackhole, local and similar routes name no interface but take addresses.
    route.ifindex = attributes.value<int>(RTA_OIF);
    route.source = attributes.ip(RTA_PREFSRC);
    route.gateway = attributes.ip(RTA_GATEWAY);
    route.protocol = header->rtm_protocol;
    return route;
}

Result<std::vector<IpRoute>> list_routes(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETROUTE, NLM_F_DUMP);
    request.header(rtmsg{});  // AF_UNSPEC: every family
    return socket.list(request, RTM_NEWROUTE, "RTM_GETROUTE", deadline, parse_route);
}

Result<void> add_peer_route(NlSocket& socket, PeerRoute const& route, Deadline deadline) {
    auto request =
        peer_request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route.address, route.ifindex);
    request.put_ip(RTA_PREFSRC, route.source);
    auto const call = "RTM_NEWROUTE " + to_string(route.address);
    VFMGR_TRY(auto const ack, socket.request(request, call, deadline));
    if (ack.ok()) return {};
    if (ack.error == EEXIST) return explain_existing(socket, route, ack, call, deadline);
    return fail(nl_refusal(
        ack, call,
        fmt::format("the route to {} through interface {} could not be added",
                    to_string(route.address), route.ifindex),
        "check that the interface is up and has the address " + to_string(route.source)));
}

Result<void> remove_peer_route(NlSocket& socket, IpAddress const& address, int ifindex,
                               Deadline deadline) {
    // With our protocol number in the request the kernel matches no other route [src fib_trie.c].
    return socket.change(peer_request(RTM_DELROUTE, 0, address, ifindex),
                         {"RTM_DELROUTE " + to_string(address),
                          fmt::format("the route to {} could not be removed", to_string(address))},
                         deadline, {ESRCH, ENODEV});
}

namespace {

// Sets the protocol only in the request that adds the route. The delete request matches any
// protocol: the route goes with the address, even if another program made it.
NlRequest table_request(std::uint16_t type, int flags, NetdevAddress const& source) {
    auto const network = network_of(source.address, source.prefix_length);
    bool const made = type == RTM_NEWROUTE;
    rtmsg header{};
    header.rtm_family = family_of(source.address);
    header.rtm_dst_len = network.length;
    header.rtm_table = RT_TABLE_UNSPEC;  // RTA_TABLE has it: it needs 32 bits
    header.rtm_protocol = made ? our_route_protocol : 0;
    header.rtm_scope = made ? RT_SCOPE_LINK : RT_SCOPE_NOWHERE;
    header.rtm_type = made ? RTN_UNICAST : RTN_UNSPEC;
    NlRequest request(type, flags);
    request.header(header)
        .put_ip(RTA_DST, network.address)
        .put(RTA_OIF, source.ifindex)
        .put(RTA_TABLE, source_table(source.address));
    if (made) request.put_ip(RTA_PREFSRC, source.address);
    return request;
}

NlRequest rule_request(std::uint16_t type, int flags, IpAddress const& source) {
    fib_rule_hdr header{};
    header.family = family_of(source);
    header.src_len = static_cast<std::uint8_t>(source.bits());
    header.action = FR_ACT_TO_TBL;
    NlRequest request(type, flags);
    request.header(header)
        .put_ip(FRA_SRC, source)
        .put(FRA_TABLE, source_table(source))
        .put(FRA_PRIORITY, source_rule_priority);
    // As in systemd-networkd's rule of the same file: another protocol would make a second rule.
    if (type == RTM_NEWRULE) request.put<std::uint8_t>(FRA_PROTOCOL, RTPROT_STATIC);
    return request;
}

NlRefusal refusal_of(std::string call, char const* what, IpAddress const& source) {
    return {std::move(call),
            fmt::format("the {} for packets from {} could not be changed", what, to_string(source)),
            "check: ip rule; ip route show table all",
            {{EPERM, "run it as root, or with CAP_NET_ADMIN"},
             {EOPNOTSUPP, "boot a kernel with CONFIG_IP_MULTIPLE_TABLES"}}};
}

NlRefusal route_refusal(char const* call, IpAddress const& source) {
    return refusal_of(fmt::format("{} table {}", call, source_table(source)), "route", source);
}

NlRefusal rule_refusal(char const* call, IpAddress const& source) {
    return refusal_of(fmt::format("{} from {}", call, to_string(source)), "routing rule", source);
}

}  // namespace

std::uint32_t source_table(IpAddress const& address) {
    std::uint32_t table = 0;
    for (std::size_t at = 0; at < address.octets.size(); ++at)
        table ^= static_cast<std::uint32_t>(address.octets[at]) << (24 - at % 4 * 8);
    return table;
}

Result<void> add_source_route(NlSocket& socket, NetdevAddress const& address, Deadline deadline) {
    VFMGR_CHECK(socket.change(table_request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, address),
                              route_refusal("RTM_NEWROUTE", address.address), deadline));
    return socket.change(rule_request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, address.address),
                         rule_refusal("RTM_NEWRULE", address.address), deadline, {EEXIST});
}

Result<void> remove_source_route(NlSocket& socket, NetdevAddress const& address,
                                 Deadline deadline) {
    VFMGR_CHECK(socket.change(rule_request(RTM_DELRULE, 0, address.address),
                              rule_refusal("RTM_DELRULE", address.address), deadline, {ENOENT}));
    return socket.change(table_request(RTM_DELROUTE, 0, address),
                         route_refusal("RTM_DELROUTE", address.address), deadline, {ESRCH, ENODEV});
}

}  // namespace vfmgr
