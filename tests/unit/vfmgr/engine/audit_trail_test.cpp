// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/audit_trail.hpp"

#include <gtest/gtest.h>

#include <future>

#include "tests/unit/file_size_limit.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

struct AuditTrailTest : testing::Test {
    test::TemporaryFolder folder;
    std::unique_ptr<Control> control =
        Control::start(Store::open(folder.file("vfmgr.db")).value(), system_clock()).value();
    std::shared_ptr<AuditTrail> trail =
        std::make_shared<AuditTrail>(*control, AuditLimits{.waiting = 4, .counted = 3});

    static AuditEntry entry(std::string who, std::chrono::seconds at) {
        return {Time(at), std::move(who), "id", "POST /v1/x", "/v1/x", "403", true};
    }
    std::vector<AuditEntry> written() {
        return control->wait([](Control::State& state) { return state.store.audit({}, {}); })
            .value()
            .items;
    }
    std::uint64_t requests_of(std::string const& who) {
        std::uint64_t requests = 0;
        for (auto const& one : written())
            if (one.who == who) requests += one.requests;
        return requests;
    }
};

TEST_F(AuditTrailTest, WhatIsTooMuchToWaitIsCountedAndNothingIsLost) {
    std::promise<void> until;
    control->post([released = until.get_future().share()](Control::State&) { released.wait(); });
    for (int i = 0; i < 1000; ++i) trail->add(entry("a", 60s));
    until.set_value();
    trail->finish();
    EXPECT_EQ(requests_of("a"), 1000U);
    EXPECT_EQ(written().size(), 5U) << "four by themselves, and the others together";
}

TEST_F(AuditTrailTest, AMinuteIsWrittenWhenItIsOver) {
    for (int i = 0; i < 3; ++i) trail->count(entry("a", 61s));
    trail->count(entry("a", 120s));
    trail->write_minutes(Time(119s));
    EXPECT_TRUE(written().empty());
    trail->write_minutes(Time(121s));
    auto const entries = written();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].requests, 3U);
    EXPECT_EQ(entries[0].at, Time(60s));
    trail->finish();
    EXPECT_EQ(requests_of("a"), 4U);
}

// Each write waits for the disk, and keeps the control thread from all other work.
TEST_F(AuditTrailTest, IsWrittenAtOnceAndThenTogether) {
    trail = std::make_shared<AuditTrail>(*control, AuditLimits{.pause = 1h});
    for (auto const* who : {"a", "b", "c"}) {
        trail->add(entry(who, 60s));
        EXPECT_EQ(written().size(), 1U) << who;
    }
    trail->finish();
    EXPECT_EQ(written().size(), 3U);
}

TEST_F(AuditTrailTest, IsWrittenWhenThePauseIsOver) {
    trail = std::make_shared<AuditTrail>(*control, AuditLimits{.pause = 20ms});
    for (auto const* who : {"a", "b"}) trail->add(entry(who, 60s));
    auto const all = std::make_shared<std::promise<void>>();
    control->watch(Deadline::max(), [all](Control::State& state, Watch) {
        if (state.store.audit({}, {}).value().items.size() < 2) return false;
        all->set_value();
        return true;
    });
    EXPECT_EQ(all->get_future().wait_for(30s), std::future_status::ready);
}

TEST_F(AuditTrailTest, ManyNamesAreOneRow) {
    for (int who = 0; who < 100; ++who) trail->count(entry(std::to_string(who), 60s));
    trail->finish();
    EXPECT_EQ(written().size(), 4U);
    EXPECT_EQ(requests_of("others"), 97U);
}

TEST_F(AuditTrailTest, WhatTheStoreDoesNotTakeIsCountedUntilItDoes) {
    {
        test::FileSizeLimit const full(1);
        for (int i = 0; i < 3; ++i) trail->add(entry("a", 60s));
        trail->finish();
        trail->add(entry("a", 60s));
        trail->finish();
    }
    EXPECT_TRUE(written().empty());
    trail->finish();
    EXPECT_EQ(requests_of("a"), 4U);
}

}  // namespace
}  // namespace vfmgr
