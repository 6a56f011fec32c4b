// SPDX-License-Identifier: Apache-2.0
// Every change becomes an event, in the order of the changes, durable and emitted once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/file_size_limit.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using Kinds = std::vector<EventKind>;

// Collects what is emitted.
class Emitted {
  public:
    void take(std::vector<Event> const& events) {
        std::lock_guard const lock(mutex_);
        ++turns_;
        all_.insert(all_.end(), events.begin(), events.end());
        changed_.notify_all();
    }
    Event await(EventKind kind) {
        std::unique_lock lock(mutex_);
        auto found = all_.end();
        EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] {
            return (found = std::ranges::find(all_, kind, &Event::kind)) != all_.end();
        })) << enum_name(kind);
        return found == all_.end() ? Event{} : *found;
    }
    std::vector<Event> take_all() {
        std::lock_guard const lock(mutex_);
        return std::exchange(all_, {});
    }
    std::size_t turns() {
        std::lock_guard const lock(mutex_);
        return turns_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Event> all_;
    std::size_t turns_ = 0;
};

Kinds kinds_of(std::vector<Event> const& events) {
    Kinds kinds;
    for (auto const& event : events) kinds.push_back(event.kind);
    return kinds;
}

struct EventsTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Emitted emitted;
    std::unique_ptr<Bench> bench;

    EventsTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        open();
    }
    ~EventsTest() override { bench.reset(); }
    void open() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        EXPECT_TRUE(
            bench->engine.on_events([this](auto const& events) { emitted.take(events); }, 0));
    }
    // All that was emitted so far, and nothing more comes of what was requested.
    std::vector<Event> so_far() {
        for (int turn = 0; turn < 2; ++turn)
            bench->engine.control().wait([](Control::State&) { return true; });
        return emitted.take_all();
    }
    EventPage stored(std::uint64_t after = 0) {
        return bench->engine.control().wait(
            [&](Control::State& state) { return state.store.events_after(after, 1000).value(); });
    }
};

TEST_F(EventsTest, AnAttachmentFromItsRequestToItsEnd) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    EXPECT_EQ(kinds_of(so_far()), (Kinds{EventKind::operation_accepted, EventKind::pf_configured,
                                         EventKind::operation_succeeded}));
    auto const operation = bench->run(Attach{ask()});
    auto const id = bench->desired().attachments.begin()->first;
    auto const attached = so_far();
    EXPECT_EQ(kinds_of(attached), (Kinds{EventKind::operation_accepted, EventKind::attaching,
                                         EventKind::attached, EventKind::operation_succeeded}));
    for (auto const& event : attached) {
        EXPECT_EQ(event.operation, operation.id);
        EXPECT_EQ(event.attachment, id);
        EXPECT_NE(event.at, Time{});
    }
    EXPECT_EQ(attached[0].vf, std::nullopt) << "none is chosen yet";
    for (std::size_t i = 1; i < 4; ++i) {
        EXPECT_EQ(attached[i].pf, pf0);
        EXPECT_EQ(attached[i].vf, 0U);
        EXPECT_EQ(attached[i].vm, "vm1");
        EXPECT_EQ(attached[i].vm_uuid, vm1);
    }
    EXPECT_THAT(attached[0].detail, HasSubstr("requested attach of /v1/attachments/" + id));
    bench->run(Detach{id});
    auto const detached = so_far();
    EXPECT_EQ(kinds_of(detached), (Kinds{EventKind::operation_accepted, EventKind::detaching,
                                         EventKind::detached, EventKind::operation_succeeded}));
    EXPECT_TRUE(detached[2].certificate);
    EXPECT_EQ(detached[3].vf, 0U) << "although the attachment is gone";
    EXPECT_EQ(detached[3].vm, "vm1");
}

TEST_F(EventsTest, AreEmittedInTheOrderInWhichTheyAreStored) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench->run(Attach{ask()});
    auto const all = so_far();
    EXPECT_EQ(stored().events, all);
    EXPECT_TRUE(std::ranges::is_sorted(all, {}, &Event::number));
    EXPECT_EQ(stored().last, all.back().number);
    auto const page = bench->engine.on_events({}, 2).value();
    ASSERT_EQ(page.events.size(), 2U);
    EXPECT_EQ(page.events.back(), all.back());
}

TEST_F(EventsTest, AreEmittedWhenReadersCanReadWhatTheyAreAbout) {
    std::promise<bool> told;
    auto const emit = [&, once = false](std::vector<Event> const& events) mutable {
        bool const created = std::ranges::count(events, EventKind::token_created, &Event::kind) > 0;
        if (created && !std::exchange(once, true))
            told.set_value(bench->engine.snapshot().tokens->contains("aa"));
    };
    ASSERT_TRUE(bench->engine.on_events(emit, 0));
    bench->engine.control().wait([](Control::State& state) {
        return state.save_token({"id", "aa", "admin", "", {}, {}}).has_value();
    });
    EXPECT_TRUE(told.get_future().get());
    ASSERT_TRUE(bench->engine.on_events({}, 0));
}

TEST_F(EventsTest, OfOneTurnAreEmittedAtOnce) {
    auto const before = emitted.turns();
    bench->engine.control().wait([](Control::State& state) {
        for (auto const* id : {"one", "two", "three"})
            EXPECT_TRUE(state.save_token({id, id, "viewer", "", {}, {}}));
        return true;
    });
    EXPECT_EQ(so_far().size(), 3U);
    EXPECT_EQ(emitted.turns(), before + 1);
}

TEST_F(EventsTest, AFailureNamesItsReason) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    hypervisor.fail_at = Fault{0, FaultPoint::before};
    bench->run(Attach{ask()});
    auto const all = so_far();
    EXPECT_EQ(all.back().kind, EventKind::operation_failed);
    EXPECT_THAT(all.back().detail, HasSubstr("attach of /v1/attachments/"));
    EXPECT_THAT(all.back().detail, HasSubstr(" failed: "));
    EXPECT_EQ(kinds_of(all).at(kinds_of(all).size() - 2), EventKind::attach_failed);
}

TEST_F(EventsTest, AVmThatKeepsItsVf) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench->run(Attach{ask()});
    so_far();
    hypervisor.fail_at = Fault{hypervisor.performed(), FaultPoint::before};
    bench->run(Detach{bench->desired().attachments.begin()->first});
    EXPECT_EQ(kinds_of(so_far()), (Kinds{EventKind::operation_accepted, EventKind::detaching,
                                         EventKind::detach_failed, EventKind::operation_failed}));
}

TEST_F(EventsTest, AQuarantineAndItsEnd) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(7)});
    bench->run(Attach{ask()});
    so_far();
    kernel.on_perform = [&](KernelStep const& step) {
        if (std::holds_alternative<ResetVf>(step))
            kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    };
    bench->run(Detach{bench->desired().attachments.begin()->first});
    kernel.on_perform = {};
    kernel.fail_at.reset();
    EXPECT_THAT(kinds_of(so_far()), testing::Contains(EventKind::quarantined));
    ASSERT_EQ(bench->desired().quarantine.size(), 1U);
    bench->run(LiftQuarantine{bench->desired().quarantine.begin()->first});
    auto const lifted = so_far();
    EXPECT_EQ(kinds_of(lifted), (Kinds{EventKind::operation_accepted, EventKind::quarantine_lifted,
                                       EventKind::detached, EventKind::operation_succeeded}));
    EXPECT_EQ(lifted[0].vf, 0U);
    EXPECT_EQ(lifted[1].vm, "vm1");
}

TEST_F(EventsTest, TokensByTheirIdAlone) {
    bench->engine.control().wait([](Control::State& state) {
        EXPECT_TRUE(state.save_token({"a1b2c3d4", "the hash", "operator", "for x", {}, {}}));
        EXPECT_TRUE(state.save_token({"a1b2c3d4", "hash 2", "operator", "for x", {}, {}}));
        EXPECT_EQ(state.erase_token("other"), false);
        EXPECT_EQ(state.erase_token("a1b2c3d4"), true);
        return true;
    });
    auto const all = so_far();
    EXPECT_EQ(kinds_of(all), (Kinds{EventKind::token_created, EventKind::token_rotated,
                                    EventKind::token_revoked}));
    EXPECT_EQ(all[0].detail, "token a1b2c3d4 with role operator");
    for (auto const& event : all) {
        EXPECT_EQ(event.token, "a1b2c3d4");
        EXPECT_THAT(event.detail, testing::Not(HasSubstr("hash"))) << "nothing of the secret";
    }
}

TEST_F(EventsTest, AForgottenPf) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    so_far();
    bench->run(ForgetPf{pf0});
    auto const all = so_far();
    EXPECT_EQ(kinds_of(all), (Kinds{EventKind::operation_accepted, EventKind::pf_forgotten,
                                    EventKind::operation_succeeded}));
    for (auto const& event : all) EXPECT_EQ(event.pf, pf0);
}

TEST_F(EventsTest, WhatTheHostChangesByItself) {
    bench->engine.start_observing();
    emitted.await(EventKind::vfmgrd_started);
    hypervisor.stop(vm1);
    bench->engine.observe_at_once();
    auto const stopped = emitted.await(EventKind::vm_stopped);
    EXPECT_EQ(stopped.vm, "vm1");
    EXPECT_GT(stopped.number, 0U);
    EXPECT_EQ(stored(stopped.number - 1).events.front(), stopped);
    auto const last = stored().last;
    have_looked(bench->engine, kernel);
    EXPECT_EQ(stored().last, last) << "observing is no change";
}

// A client that resumes over a restart is told that vfmgrd did not observe for a while.
TEST_F(EventsTest, AnInterruptedOperationEndsAfterTheStart) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    bench->engine.control().wait([](Control::State& state) {
        Batch batch;
        batch.save_operations.push_back(
            new_operation(OperationKind::verify, "/v1/attachments/3f9c2b1d", Time{}));
        batch.save_operations.back().id = "cut short";
        return state.commit(std::move(batch)).has_value();
    });
    open();
    auto const page = stored();
    EXPECT_EQ(page.events.back().kind, EventKind::operation_failed);
    EXPECT_EQ(page.events.back().operation, "cut short");
    EXPECT_EQ(page.events.back().attachment, "3f9c2b1d");
    EXPECT_EQ(std::ranges::count(kinds_of(page.events), EventKind::operation_accepted), 2);
}

TEST_F(EventsTest, AStoreThatCantBeWrittenIsReportedOnceItCan) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    so_far();
    auto const commit = [&] {
        return bench->engine.control().wait([](Control::State& state) {
            Batch batch;
            batch.save_idempotency.push_back({"key", "hash", "operation", Time{}});
            return state.commit(std::move(batch)).has_value();
        });
    };
    {
        test::FileSizeLimit const full(0);
        EXPECT_FALSE(commit());
        EXPECT_FALSE(commit());
        EXPECT_TRUE(so_far().empty());
    }
    EXPECT_TRUE(commit());
    auto const all = so_far();
    EXPECT_EQ(kinds_of(all), (Kinds{EventKind::store_read_only, EventKind::store_writable}));
    EXPECT_EQ(stored(all[0].number - 1).events, all);
    EXPECT_TRUE(commit());
    EXPECT_TRUE(so_far().empty());
}

}  // namespace
}  // namespace vfmgr
