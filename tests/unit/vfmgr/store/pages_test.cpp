// SPDX-License-Identifier: Apache-2.0
// Lists in parts: each goes on from the place where the part before ended, whatever came or went.
#include "store_bench.hpp"

namespace vfmgr {
namespace {

using test::at;
using Ids = std::vector<std::string>;

class PagesTest : public test::StoreTest {};

Batch saving(Operation operation) {
    Batch batch;
    batch.save_operations = {std::move(operation)};
    return batch;
}

Ids ids_of(Rows<Operation> const& rows) {
    Ids ids;
    for (auto const& operation : rows.items) ids.push_back(operation.id);
    return ids;
}

// "old" was accepted while the clock was set back, and "twin" in the same millisecond as "b".
void save_five(Store& store) {
    for (auto const& [id, created_ms] :
         {std::pair("a", 2000), {"b", 3000}, {"twin", 3000}, {"old", 1000}, {"new", 4000}})
        ASSERT_TRUE(store.commit(saving(test::operation(id, OperationState::failed, created_ms))));
}

TEST_F(PagesTest, OperationsGoOnFromAPlace) {
    auto store = open();
    save_five(store);
    auto const first = store.operations({}, {2}).value();
    EXPECT_EQ(ids_of(first), (Ids{"new", "twin"}));
    ASSERT_TRUE(first.next);
    // One comes, the one at the place changes, and the next in turn does too.
    ASSERT_TRUE(store.commit(saving(test::operation("newest", OperationState::running, 5000))));
    for (auto const* id : {"twin", "b"})
        ASSERT_TRUE(store.commit(saving(test::operation(id, OperationState::succeeded, 3000))));
    auto const second = store.operations({}, {2, first.next}).value();
    EXPECT_EQ(ids_of(second), (Ids{"b", "a"}));
    auto const third = store.operations({}, {2, second.next}).value();
    EXPECT_EQ(ids_of(third), Ids{"old"});
    EXPECT_FALSE(third.next);
}

TEST_F(PagesTest, APlaceOutlivesItsRow) {
    auto store = open();
    save_five(store);
    auto const first = store.operations({}, {3}).value();
    ASSERT_EQ(ids_of(first).back(), "b");
    ASSERT_TRUE(store.prune(at(3500) + std::chrono::hours(24 * 30)));
    ASSERT_TRUE(store.commit(saving(test::operation("older", OperationState::failed, 500))));
    EXPECT_EQ(ids_of(store.operations({}, {3, first.next}).value()), Ids{"older"});
}

TEST_F(PagesTest, AFullPageMayBeTheLast) {
    auto store = open();
    save_five(store);
    EXPECT_FALSE(store.operations({}, {5})->next);
    EXPECT_TRUE(store.operations({}, {4})->next);
}

TEST_F(PagesTest, OperationsAreFiltered) {
    auto store = open();
    auto detach = test::operation("detach", OperationState::succeeded, 1000);
    detach.kind = OperationKind::detach;
    auto running = test::operation("running", OperationState::running, 2000);
    running.subject = "/v1/attachments/00000002";
    for (auto const& one : {detach, running, test::operation("failed", OperationState::failed, 3)})
        ASSERT_TRUE(store.commit(saving(one)));
    auto const having = [&](OperationFilter const& filter) {
        return ids_of(store.operations(filter, {}).value());
    };
    EXPECT_EQ(having({OperationState::failed}), Ids{"failed"});
    EXPECT_EQ(having({{}, OperationKind::detach}), Ids{"detach"});
    EXPECT_EQ(having({{}, {}, "/v1/attachments/00000001"}), (Ids{"detach", "failed"}));
    EXPECT_EQ(having({OperationState::running, OperationKind::detach}), Ids{});
    running.state = OperationState::succeeded;
    ASSERT_TRUE(store.commit(saving(running)));
    EXPECT_EQ(having({OperationState::running}), Ids{}) << "it has ended";
    auto const part = store.operations({{}, {}, "/v1/attachments/00000001"}, {1}).value();
    EXPECT_EQ(
        ids_of(store.operations({{}, {}, "/v1/attachments/00000001"}, {1, part.next}).value()),
        Ids{"failed"});
}

TEST_F(PagesTest, RunsGoOnFromAPlace) {
    auto store = open();
    Batch batch;
    for (auto const* run : {"1", "2", "3"})
        batch.save_verifications.push_back(test::run_on_vf(run, "00000001", 1000));
    batch.save_verifications.push_back(test::run_on_vf("4", "00000002", 2000));
    ASSERT_TRUE(store.commit(batch));
    VfId const vf{test::pf, 1};
    auto const first = store.verifications(vf, {2}).value();
    ASSERT_TRUE(first.next);
    auto const second = store.verifications(vf, {2, first.next}).value();
    ASSERT_EQ(second.items.size(), 2U);
    EXPECT_EQ(second.items[0].run, "2") << "newest first";
    EXPECT_EQ(store.verifications(vf, {}, "00000002")->items.size(), 1U);
    auto const of_one = store.verifications("00000001", {2}).value();
    EXPECT_EQ(store.verifications("00000001", {2, of_one.next})->items.size(), 1U);
}

TEST_F(PagesTest, EventsGoOnFromAPlace) {
    auto store = open();
    Batch batch;
    for (std::uint64_t number = 1; number <= 6; ++number)
        batch.save_events.push_back(test::event(number, number % 3 == 0 ? std::nullopt
                                                        : number % 3 == 1
                                                            ? std::optional<std::uint16_t>(1)
                                                            : std::optional<std::uint16_t>(2)));
    batch.save_events[3].attachment = "00000001";
    ASSERT_TRUE(store.commit(batch));
    VfId const vf{test::pf, 1};
    auto const first = store.events(vf, {2}).value();
    EXPECT_EQ(first.items, (std::vector{batch.save_events[5], batch.save_events[3]}));
    auto const second = store.events(vf, {2, first.next}).value();
    EXPECT_EQ(second.items, (std::vector{batch.save_events[2], batch.save_events[0]}));
    EXPECT_FALSE(second.next);
    EXPECT_EQ(store.events(vf, {}, "00000001")->items, std::vector{batch.save_events[3]});
    EXPECT_EQ(store.knows(vf), true);
    EXPECT_EQ(store.knows({test::pf, 3}), false) << "the PF's events are of no VF";
}

TEST_F(PagesTest, TheAuditGoesOnFromAPlace) {
    auto store = open();
    std::vector<AuditEntry> entries;
    for (auto const* who : {"uid:0", "token:a", "uid:0", "uid:0"})
        entries.push_back({at(1000), who, "id", "POST /v1/x", "/v1/x", "202"});
    entries[0].from = "uid:0";
    entries[2].outcome = "403";
    entries[3].operation = "0011";
    entries[3].plan_digest = std::string(64, 'a');
    ASSERT_TRUE(store.append_audits(entries));
    auto const first = store.audit({"uid:0", {}}, {2}).value();
    EXPECT_EQ(first.items, (std::vector{entries[3], entries[2]}));
    EXPECT_EQ(store.audit({"uid:0", {}}, {2, first.next})->items, std::vector{entries[0]});
    EXPECT_EQ(store.audit({{}, "403"}, {})->items, std::vector{entries[2]});
}

}  // namespace
}  // namespace vfmgr
