// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/route.hpp"

#include <fmt/format.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace vfmgr {
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
    route.metric = attributes.value<std::uint32_t>(RTA_PRIORITY).value_or(0);
    return route;
}

Result<std::vector<IpRoute>> list_routes(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETROUTE, NLM_F_DUMP);
    request.header(rtmsg{});  // AF_UNSPEC: every family
    VFMGR_TRY(auto const answers, socket.dump(request, "RTM_GETROUTE", deadline));
    std::vector<IpRoute> routes;
    for (auto const& answer : answers)
        if (answer.type == RTM_NEWROUTE)
            if (auto route = parse_route(answer.payload)) routes.push_back(*route);
    return routes;
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
    auto const call = "RTM_DELROUTE " + to_string(address);
    // With our protocol number in the request the kernel matches no other route [src fib_trie.c].
    VFMGR_TRY(auto const ack,
              socket.request(peer_request(RTM_DELROUTE, 0, address, ifindex), call, deadline));
    if (ack.ok() || ack.error == ESRCH || ack.error == ENODEV) return {};
    return fail(nl_refusal(ack, call,
                           fmt::format("the route to {} could not be removed", to_string(address)),
                           "see the kernel's log for the reason: journalctl -k"));
}

}  // namespace vfmgr
