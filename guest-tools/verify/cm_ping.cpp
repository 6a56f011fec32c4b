// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/cm_ping.hpp"

namespace vfmgr::verify {

Measured cm_ping(CmPinger const& pinger, StreamHost const& host, CmOptions options,
                 Deadline deadline) {
    if (!pinger) {
        auto made = measured("cm_ping");
        made.result.verdict = Verdict::skip;
        made.result.detail = "this program has no RDMA CM client";
        return made;
    }
    auto const offer = host.open({StreamKind::cm_ping, options.message_bytes, 1, {}, {}});
    if (!offer) {
        auto made = measured_failure("cm_ping", offer.error());
        auto const problem = offer.error().problem;
        if (problem == Problem::unsupported || problem == Problem::unavailable)
            made.result.verdict = Verdict::skip;
        return made;
    }
    options.cm_port = offer->cm_port.value_or(0);
    auto made = pinger(options, deadline);
    host.close(offer->stream);
    made.result.name = "cm_ping";
    return made;
}

}  // namespace vfmgr::verify
