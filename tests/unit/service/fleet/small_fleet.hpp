// SPDX-License-Identifier: Apache-2.0
// A fleet in the tests' etcd, for tests of what decides from its state.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "service/fleet/membership.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet {

struct SmallFleet {
    Time now = *parse_rfc3339("2026-01-31T12:00:00.000Z");
    FakeClock clock;
    FakeCluster cluster{clock};
    FakeEtcd etcd{cluster};

    [[nodiscard]] Deadline soon() const { return clock.steady_now() + std::chrono::seconds(5); }
    Request by(std::string const& who) { return {who, "act" + std::to_string(++acts), now}; }
    State state() {
        auto const found = etcd.range({.key = "", .match = Match::prefix}, soon());
        EXPECT_TRUE(found);
        State state;
        if (!found) return state;
        std::vector<KeyChange> all;
        for (auto const& entry : found->entries)
            all.push_back({entry.key, entry, entry.mod_revision});
        state = with_changes(state, all);
        state.revision = found->revision;
        return state;
    }
    bool commit(Transaction const& transaction) {
        auto const outcome = etcd.commit(transaction, soon());
        return outcome && outcome->succeeded;
    }
    void change(Result<GuardedTransaction> const& guarded) {
        ASSERT_TRUE(guarded) << guarded.error().detail;
        EXPECT_TRUE(commit(guarded->transaction));
    }
    JoinToken new_token(JoinTokenRequest const& request) {
        JoinToken const token{"0000000" + std::to_string(++tokens), std::string(64, 'a'),
                              std::string(64, 'c')};
        EXPECT_TRUE(commit(add_join_token(request, token, by("uid:0")).transaction));
        return token;
    }
    void join(JoinRequest const& request) {
        auto const guarded = fleet::join(state(), request, now);
        ASSERT_TRUE(guarded) << guarded.error().detail;
        EXPECT_TRUE(commit(std::get<GuardedTransaction>(*guarded).transaction));
    }

    int acts = 0;
    int tokens = 0;
};

}  // namespace vfmgr::fleet
