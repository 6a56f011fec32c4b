// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/qdisc.hpp"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

namespace vfmgr {

std::optional<Qdisc> parse_qdisc(ByteView payload) {
    auto const header = front_object<tcmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(tcmsg)));
    auto kind = attributes.text(TCA_KIND);
    if (!kind || kind->empty()) return std::nullopt;
    auto const counted = attributes.nested(TCA_STATS2).value<gnet_stats_queue>(TCA_STATS_QUEUE);
    return Qdisc{header->tcm_ifindex, std::move(*kind), header->tcm_handle,
                 counted ? counted->drops : 0};
}

Result<std::vector<Qdisc>> list_qdiscs(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETQDISC, NLM_F_DUMP);
    request.header(tcmsg{});
    VFMGR_TRY(auto const answers, socket.dump(request, "RTM_GETQDISC", deadline));
    std::vector<Qdisc> qdiscs;
    for (auto const& answer : answers)
        if (answer.type == RTM_NEWQDISC)
            if (auto qdisc = parse_qdisc(answer.payload)) qdiscs.push_back(std::move(*qdisc));
    return qdiscs;
}

}  // namespace vfmgr
