// SPDX-License-Identifier: Apache-2.0
#include "service/due.hpp"

#include "service/auth/token_rules.hpp"
#include "service/log.hpp"

namespace vfmgr {
namespace {

void save_token_uses(DueWork const& due, Time now) {
    if (auto unwritten = due.token_uses.take_unwritten(now); !unwritten.empty())
        due.engine.save_token_uses(std::move(unwritten));
}

void warn_of_ends(DueWork const& due) {
    auto const tokens = due.engine.snapshot().tokens;
    for (auto const& [sha256, published] : *tokens) {
        auto const token = due.token_uses.with_last_use(published);
        if (sha256 != token.sha256 || !ends_soon(token, due.clock.now())) continue;
        log(Severity::warning, "a token in use expires soon",
            {{"token", token.id},
             {"description", token.description},
             {"expires_at", to_rfc3339(*token.expires_at)},
             {"last_used_at", to_rfc3339(token.last_use->at)},
             {"last_used_from", token.last_use->from},
             {"remedy", "vfctl token rotate " + token.id}});
    }
}

void do_what_is_due(DueWork const& due) {
    // Only a control thread that makes progress feeds the watchdog.
    due.engine.control().post([](auto&) { feed_watchdog(); });
    due.trail.write_minutes(due.clock.now());
    due.engine.end_expired();
    due.engine.try_store_again();
    save_token_uses(due, due.clock.now());
    // Tokens and certificates end while their connections are open.
    due.server.cut(http::lapsed);
}

void do_what_is_due_daily(DueWork const& due) {
    due.engine.prune();
    due.reload.look_after_certificate();
    warn_of_ends(due);
}

}  // namespace

Attended attended_by(DueWork const& due) {
    return {[&reload = due.reload] { reload.run(); }, [due] { do_what_is_due(due); },
            [due] { do_what_is_due_daily(due); }, due.clock};
}

void save_all_token_uses(DueWork const& due) {
    save_token_uses(due, Time::max());
}

}  // namespace vfmgr
