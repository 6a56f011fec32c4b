// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/writer.hpp"

#include <algorithm>

namespace vfmgr::fleet {
namespace {

// Another replica was faster so many times in a row.
constexpr int tries_max = 16;
// What etcd refused by is on its way to this replica.
constexpr std::chrono::seconds news_max{2};
constexpr std::chrono::seconds attempt_max{3};

// What only erases has no value to find an act in. It is done once at most, since it compares a
// revision that it ends: so it is sent until there is an answer.
Result<Settled> settle_erasure(Etcd& etcd, Transaction const& transaction, Timing const& timing,
                               Deadline deadline) {
    Backoff backoff(std::chrono::milliseconds(50), std::chrono::milliseconds(2'000));
    for (;;) {
        auto const now = timing.clock.steady_now();
        auto const outcome = etcd.commit(transaction, std::min(deadline, now + attempt_max));
        if (outcome && outcome->succeeded) return Done{outcome->revision};
        if (outcome) return Refused{outcome->found};
        auto const again = timing.clock.steady_now() + backoff.next();
        if (outcome.error().problem == Problem::forbidden || again >= deadline ||
            !timing.wait_until(again))
            return fail(outcome.error());
    }
}

Error other_scheduler() {
    return {Problem::unavailable, "another replica of vfmgr-fleetd schedules now",
            "send the request again: it goes to that one"};
}

}  // namespace

Result<std::shared_ptr<State const>> Writer::write(Decide const& decide, Deadline deadline) const {
    for (int tries = 0; tries < tries_max; ++tries) {
        auto const state = registry_.state();
        VFMGR_TRY(auto const decided, decide(*state));
        if (!decided) return state;
        VFMGR_TRY(auto const settled,
                  decided->act.empty()
                      ? settle_erasure(etcd_, decided->transaction, timing_, deadline)
                      : settle(etcd_, *decided, timing_, deadline));
        auto const now = timing_.clock.steady_now();
        if (auto const* const done = std::get_if<Done>(&settled)) {
            // If the news is late, it is done all the same.
            static_cast<void>(
                registry_.wait_for(done->revision, std::min(deadline, now + news_max)));
            return registry_.state();
        }
        static_cast<void>(
            registry_.wait_for(state->revision + 1, std::min(deadline, now + news_max)));
    }
    return fail(Problem::unavailable, "other requests change the same, faster than this one could",
                "send it again");
}

Result<std::shared_ptr<State const>> Writer::write_as_scheduler(Revision fence,
                                                                Decide const& decide,
                                                                Deadline deadline) const {
    std::string const leader(keys::leader);
    return write(
        [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
            if (state.leader && state.leader->create_revision > fence)
                return fail(other_scheduler());
            VFMGR_TRY(auto decided, decide(state));
            if (decided) decided->transaction.compares.push_back(created_at(leader, fence));
            return decided;
        },
        deadline);
}

}  // namespace vfmgr::fleet
