// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/source_route.hpp"

#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "vfmgr/netlink/route.hpp"

namespace vfmgr {
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

Error refused(NlAck const& ack, std::string call, NetdevAddress const& source, char const* what) {
    return nl_refusal(ack, std::move(call),
                      fmt::format("the {} for packets from {} could not be changed", what,
                                  to_string(source.address)),
                      ack.error == EPERM        ? "run it as root, or with CAP_NET_ADMIN"
                      : ack.error == EOPNOTSUPP ? "boot a kernel with CONFIG_IP_MULTIPLE_TABLES"
                                                : "check: ip rule; ip route show table all");
}

}  // namespace

std::uint32_t source_table(IpAddress const& address) {
    std::uint32_t table = 0;
    for (std::size_t at = 0; at < address.octets.size(); ++at)
        table ^= static_cast<std::uint32_t>(address.octets[at]) << (24 - at % 4 * 8);
    return table;
}

Result<void> add_source_route(NlSocket& socket, NetdevAddress const& address, Deadline deadline) {
    auto const call = "RTM_NEWROUTE table " + std::to_string(source_table(address.address));
    VFMGR_TRY(auto const routed,
              socket.request(table_request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, address),
                             call, deadline));
    if (!routed.ok()) return fail(refused(routed, call, address, "route"));
    auto const rule_call = "RTM_NEWRULE from " + to_string(address.address);
    VFMGR_TRY(auto const ruled,
              socket.request(rule_request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, address.address),
                             rule_call, deadline));
    if (ruled.ok() || ruled.error == EEXIST) return {};
    return fail(refused(ruled, rule_call, address, "routing rule"));
}

Result<void> remove_source_route(NlSocket& socket, NetdevAddress const& address,
                                 Deadline deadline) {
    auto const rule_call = "RTM_DELRULE from " + to_string(address.address);
    VFMGR_TRY(auto const ruled,
              socket.request(rule_request(RTM_DELRULE, 0, address.address), rule_call, deadline));
    if (!ruled.ok() && ruled.error != ENOENT)
        return fail(refused(ruled, rule_call, address, "routing rule"));
    auto const call = "RTM_DELROUTE table " + std::to_string(source_table(address.address));
    VFMGR_TRY(auto const routed,
              socket.request(table_request(RTM_DELROUTE, 0, address), call, deadline));
    if (routed.ok() || routed.error == ESRCH || routed.error == ENODEV) return {};
    return fail(refused(routed, call, address, "route"));
}

}  // namespace vfmgr
