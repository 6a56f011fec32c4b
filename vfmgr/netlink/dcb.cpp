// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/dcb.hpp"

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

namespace vfmgr {
namespace {

static_assert(dcb_priorities == IEEE_8021QAZ_MAX_TCS);
static_assert(dcb_selects_dscp == IEEE_8021QAZ_APP_SEL_DSCP);

std::array<std::uint8_t, dcb_priorities> copied(std::uint8_t const (&from)[dcb_priorities]) {
    std::array<std::uint8_t, dcb_priorities> to;
    std::ranges::copy(from, to.begin());
    return to;
}

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
    if (auto const pfc = ieee.value<ieee_pfc>(DCB_ATTR_IEEE_PFC))
        dcb.pfc = DcbPfc{pfc->pfc_cap, pfc->pfc_en, pfc->delay};
    if (auto const ets = ieee.value<ieee_ets>(DCB_ATTR_IEEE_ETS))
        dcb.ets = DcbEts{copied(ets->prio_tc), copied(ets->tc_tsa), copied(ets->tc_tx_bw)};
    auto const table = ieee.nested(DCB_ATTR_IEEE_APP_TABLE);
    for (auto const& attribute : table.all()) {
        auto const app = front_object<dcb_app>(attribute.value);
        if (attribute.type == DCB_ATTR_IEEE_APP && app && app->priority < dcb_priorities)
            dcb.apps.push_back({app->selector, app->priority, app->protocol});
    }
    return dcb;
}

}  // namespace vfmgr
