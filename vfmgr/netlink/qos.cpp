// SPDX-License-Identifier: Apache-2.0
// What the kernel reports of priorities and queues: DCB, PAUSE, qdiscs. Free functions; any thread.
#include "vfmgr/netlink/qos.hpp"

#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <linux/gen_stats.h>
#include <linux/genetlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

namespace vfmgr {
namespace {

static_assert(dcb_priorities == IEEE_8021QAZ_MAX_TCS);
static_assert(dcb_selects_dscp == IEEE_8021QAZ_APP_SEL_DSCP);

}  // namespace

bool trusts_dscp(Dcb const& dcb) {
    return std::ranges::find(dcb.apps, dcb_selects_dscp, &DcbApp::selector) != dcb.apps.end();
}

std::uint8_t priority_of_dscp(Dcb const& dcb, std::uint8_t dscp) {
    std::uint8_t priority = 0;
    for (auto const& app : dcb.apps)
        if (app.selector == dcb_selects_dscp && app.protocol == dscp)
            priority = std::max(priority, app.priority);
    return priority;
}

NlRequest dcb_request(std::string_view ifname) {
    dcbmsg header{};
    header.dcb_family = AF_UNSPEC;
    header.cmd = DCB_CMD_IEEE_GET;
    NlRequest request(RTM_GETDCB, 0);
    request.header(header).put_text(DCB_ATTR_IFNAME, ifname);
    return request;
}

std::optional<Dcb> parse_dcb(ByteView payload) {
    auto const header = front_object<dcbmsg>(payload);
    if (!header || header->cmd != DCB_CMD_IEEE_GET) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(dcbmsg)));
    auto ifname = attributes.text(DCB_ATTR_IFNAME);
    if (!ifname || ifname->empty()) return std::nullopt;
    Dcb dcb;
    dcb.ifname = std::move(*ifname);
    auto const ieee = attributes.nested(DCB_ATTR_IEEE);
    if (auto const pfc = ieee.value<ieee_pfc>(DCB_ATTR_IEEE_PFC)) dcb.pfc = pfc->pfc_en;
    auto const table = ieee.nested(DCB_ATTR_IEEE_APP_TABLE);
    for (auto const& attribute : table.all()) {
        auto const app = front_object<dcb_app>(attribute.value);
        if (attribute.type == DCB_ATTR_IEEE_APP && app && app->priority < dcb_priorities)
            dcb.apps.push_back({app->selector, app->priority, app->protocol});
    }
    return dcb;
}

NlRequest family_request(std::string_view name) {
    NlRequest request(GENL_ID_CTRL, 0);
    request.header(genlmsghdr{CTRL_CMD_GETFAMILY, 1, 0}).put_text(CTRL_ATTR_FAMILY_NAME, name);
    return request;
}

NlRequest pause_request(std::uint16_t family, std::string_view ifname) {
    NlRequest request(family, 0);
    request.header(genlmsghdr{ETHTOOL_MSG_PAUSE_GET, ETHTOOL_GENL_VERSION, 0});
    // Unlike those of rtnetlink for VFs, this nest is refused without its flag.
    request.nest(ETHTOOL_A_PAUSE_HEADER | NLA_F_NESTED,
                 [&](NlRequest& header) { header.put_text(ETHTOOL_A_HEADER_DEV_NAME, ifname); });
    return request;
}

std::optional<Pause> parse_pause(ByteView payload) {
    Attributes const attributes(after(payload, sizeof(genlmsghdr)));
    auto ifname = attributes.nested(ETHTOOL_A_PAUSE_HEADER).text(ETHTOOL_A_HEADER_DEV_NAME);
    if (!ifname || ifname->empty()) return std::nullopt;
    return Pause{std::move(*ifname),
                 attributes.value<std::uint8_t>(ETHTOOL_A_PAUSE_RX).value_or(0) != 0,
                 attributes.value<std::uint8_t>(ETHTOOL_A_PAUSE_TX).value_or(0) != 0};
}

std::optional<Qdisc> parse_qdisc(ByteView payload) {
    auto const header = front_object<tcmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(tcmsg)));
    auto kind = attributes.text(TCA_KIND);
    if (!kind || kind->empty()) return std::nullopt;
    auto const counted = attributes.nested(TCA_STATS2).value<gnet_stats_queue>(TCA_STATS_QUEUE);
    return Qdisc{header->tcm_ifindex, std::move(*kind), counted ? counted->drops : 0};
}

Result<std::vector<Qdisc>> list_qdiscs(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETQDISC, NLM_F_DUMP);
    request.header(tcmsg{});
    return socket.list(request, RTM_NEWQDISC, "RTM_GETQDISC", deadline, parse_qdisc);
}

}  // namespace vfmgr
