// SPDX-License-Identifier: Apache-2.0
#include "service/routes/turned_away.hpp"

#include <memory>

#include "service/log.hpp"

namespace vfmgr {

std::function<void(http::Peer const&, Error const&)> report_turned_away(Audit audit, Clock& clock) {
    RateLimit const lines{.burst = 3, .per_second = 0.1};
    return [limiter = std::make_shared<RateLimiter<std::string>>(lines), audit = std::move(audit),
            &clock](http::Peer const& peer, Error const& why) {
        auto const who = stranger_name(peer);
        if (why.problem == Problem::unauthorized)
            audit.count({.at = clock.now(),
                         .who = who,
                         .request_id = {},
                         .action = "TLS handshake",
                         .subject = {},
                         .outcome = "401",
                         .refused = true,
                         .from = who});
        if (limiter->take(who, clock.steady_now()))
            log(Severity::warning, "connection refused", {{"who", who}, {"detail", why.detail}});
    };
}

}  // namespace vfmgr
