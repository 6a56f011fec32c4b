// SPDX-License-Identifier: Apache-2.0
// Operations with their journal: what recovery finds after a crash. Also verifications.
#include "api/types/json.hpp"
#include "store_bench.hpp"

namespace vfmgr {
namespace {

using test::operation;
using test::pf;
using test::record;
using test::run_on_vf;
using test::verification;

class JournalTest : public test::StoreTest {};

Batch saving(std::vector<Operation> operations) {
    Batch batch;
    batch.save_operations = std::move(operations);
    return batch;
}
Batch journaling(std::string const& id, std::vector<JournalRecord> const& records) {
    Batch batch;
    for (auto const& one : records) batch.save_records.push_back({id, one});
    return batch;
}
std::vector<std::string> ids_of(std::vector<Operation> const& operations) {
    std::vector<std::string> ids;
    for (auto const& one : operations) ids.push_back(one.id);
    return ids;
}
std::vector<std::string> unfinished_ids(Store& store) {
    std::vector<std::string> ids;
    auto const found = store.unfinished().value();
    for (auto const& one : found) ids.push_back(one.operation.id);
    return ids;
}
using Ids = std::vector<std::string>;

// Each kind of step, with what a driver may have reported before.
std::vector<Step> all_steps() {
    VfSpec observed;
    observed.mac = MacAddress{};
    observed.vlan = Vlan{};
    auto const address = IpAddress::parse("192.168.100.2").value();
    MacAddress const mac{{2, 0, 0, 0, 0, 1}};
    InterfaceId const interface{pf, 100};
    VfId const vf{pf, 2};
    PciAddress const pci{0, 1, 0x10, 4};
    return {SetNumVfs{pf, 7},
            ConfigureVfs{pf, {{2, observed}, {3, {}}}, {"trust"}},
            BindVfs{pf, {2, 3}, "vfio-pci"},
            BindVfs{pf, {2}, {}},
            ResetVf{vf},
            SetLink{{pf, {}}, true, 9000},
            AwaitCarrier{{pf, {}}},
            AddVlanInterface{interface},
            RemoveVlanInterface{interface},
            AddAddress{interface, address},
            RemoveAddress{interface, address},
            AddPeer{interface, address, mac, address},
            RemovePeer{interface, address},
            AddRdmaLink{pf},
            RemoveRdmaLink{pf},
            AddSoftRdmaLink{{"rxe0", SoftRdmaType::rxe, "bond0"}},
            RemoveSoftRdmaLink{"rxe0", true},
            AttachHostdev{"uuid", "00000001", vf, pci, mac, true, false},
            AttachHostdev{"uuid", "00000001", vf, pci, {}, false, true},
            DetachHostdev{"uuid", "00000001", vf, pci, true, true},
            DetachHostdev{"uuid", "00000001", vf, pci, true, true, "vm", true},
            MarkHostdev{"uuid", "00000001", vf, pci, true, "ua-vfmgr-00000001", false, "vm"},
            MarkHostdev{"uuid", "00000001", vf, pci, false, {}, true},
            AwaitVerification{"00000001", 120}};
}

TEST_F(JournalTest, AStepsTextIsItsDocument) {
    for (auto const& step : all_steps()) {
        std::string text;
        append_json(text, step);
        EXPECT_EQ(nlohmann::json::parse(text, nullptr, false), nlohmann::json(step)) << text;
    }
}

TEST_F(JournalTest, EveryStepComesBackWithItsUndo) {
    auto const steps = all_steps();
    std::vector<JournalRecord> records;
    for (auto const& step : steps)
        records.push_back(record(static_cast<std::uint32_t>(records.size()), step, steps));
    {
        auto store = open();
        ASSERT_TRUE(store.commit(saving({operation("op1", OperationState::running)})));
        ASSERT_TRUE(store.commit(journaling("op1", records)));
    }
    auto store = open();
    auto const found = store.unfinished().value();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].operation, operation("op1", OperationState::running));
    EXPECT_EQ(found[0].records, records);
}

TEST_F(JournalTest, UnfinishedOperationsComeInTheOrderTheyWereAccepted) {
    auto store = open();
    // The clock may be set back; the order is that of the first save.
    ASSERT_TRUE(store.commit(saving({operation("c", OperationState::queued, 3000),
                                     operation("a", OperationState::running, 1000)})));
    ASSERT_TRUE(store.commit(saving({operation("b", OperationState::queued, 2000),
                                     operation("done", OperationState::succeeded),
                                     operation("gone", OperationState::failed)})));
    ASSERT_TRUE(store.commit(saving({operation("c", OperationState::running, 3000)})));
    EXPECT_EQ(unfinished_ids(store), (Ids{"c", "a", "b"}));
    ASSERT_TRUE(store.commit(saving({operation("a", OperationState::succeeded, 1000)})));
    EXPECT_EQ(unfinished_ids(store), (Ids{"c", "b"}));
}

TEST_F(JournalTest, RecordsComeBySeqAndAreReplacedBySeq) {
    auto store = open();
    ASSERT_TRUE(store.commit(saving(
        {operation("op1", OperationState::running), operation("op2", OperationState::running)})));
    auto const last = record(UINT32_MAX, ResetVf{{pf, 1}});
    auto const tenth = record(10, AddRdmaLink{pf});
    auto second = record(2, SetNumVfs{pf, 7}, {SetNumVfs{pf, 0}});
    ASSERT_TRUE(store.commit(journaling("op1", {last, second, tenth})));
    ASSERT_TRUE(store.commit(journaling("op2", {tenth})));
    for (auto const state :
         {StepState::planned, StepState::done, StepState::failed, StepState::undone}) {
        second.state = state;
        ASSERT_TRUE(store.commit(journaling("op1", {second})));
        auto const found = store.unfinished().value();
        ASSERT_EQ(found.size(), 2U);
        EXPECT_EQ(found[0].records, (std::vector{second, tenth, last}));
        EXPECT_EQ(found[1].records, (std::vector{tenth}));
    }
}

TEST_F(JournalTest, ARecordsStateIsSavedWithoutItsSteps) {
    auto store = open();
    ASSERT_TRUE(store.commit(saving(
        {operation("op1", OperationState::running), operation("op2", OperationState::running)})));
    auto const first = record(1, ResetVf{{pf, 1}});
    auto second = record(2, SetNumVfs{pf, 7}, {SetNumVfs{pf, 0}});
    for (auto const* id : {"op1", "op2"})
        ASSERT_TRUE(store.commit(journaling(id, {first, second})));
    Batch batch;
    batch.save_record_states.push_back({"op1", 2, StepState::undone});
    ASSERT_TRUE(store.commit(batch));
    auto const found = store.unfinished().value();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[1].records, (std::vector{first, second}));
    second.state = StepState::undone;
    EXPECT_EQ(found[0].records, (std::vector{first, second}));
}

TEST_F(JournalTest, SavingAnOperationAgainKeepsItsJournal) {
    auto store = open();
    ASSERT_TRUE(store.commit(saving({operation("op1", OperationState::queued)})));
    ASSERT_TRUE(store.commit(journaling("op1", {record(1, ResetVf{{pf, 1}})})));
    ASSERT_TRUE(store.commit(saving({operation("op1", OperationState::running)})));
    EXPECT_EQ(store.unfinished().value().at(0).records.size(), 1U);
}

TEST_F(JournalTest, IsErasedWithTheOperationThatFinished) {
    auto store = open();
    ASSERT_TRUE(store.commit(saving(
        {operation("op1", OperationState::running), operation("op2", OperationState::running)})));
    for (auto const* id : {"op1", "op2"})
        ASSERT_TRUE(store.commit(journaling(id, {record(1, ResetVf{{pf, 1}})})));
    auto finishing = saving({operation("op1", OperationState::failed)});
    finishing.erase_records_of = {"op1"};
    ASSERT_TRUE(store.commit(finishing));
    EXPECT_EQ(unfinished_ids(store), (Ids{"op2"}));
    ASSERT_TRUE(store.commit(saving({operation("op1", OperationState::running)})));
    auto const found = store.unfinished().value();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_TRUE(found[0].records.empty());
    EXPECT_EQ(found[1].records.size(), 1U) << "and nobody else's";
}

TEST_F(JournalTest, OperationsAreFoundByIdAndListedNewestFirst) {
    auto store = open();
    auto const failed = operation("b", OperationState::failed, 2000);
    ASSERT_TRUE(store.commit(saving({operation("a", OperationState::queued, 3000), failed,
                                     operation("c", OperationState::succeeded, 2000),
                                     operation("d", OperationState::succeeded, 1000)})));
    EXPECT_EQ(store.operation("b").value(), failed);
    EXPECT_EQ(store.operation("B").value(), std::nullopt);
    EXPECT_EQ(store.operation("").value(), std::nullopt);
    EXPECT_EQ(ids_of(store.operations({}, {}).value().items), (Ids{"a", "c", "b", "d"}));
    EXPECT_EQ(ids_of(store.operations({}, {2}).value().items), (Ids{"a", "c"}));
    EXPECT_EQ(ids_of(store.operations({}, {0}).value().items), Ids{});
}

TEST_F(JournalTest, HundredVerificationsAreKeptForEachAttachment) {
    auto store = open();
    Batch batch;
    for (int i = 0; i < 103; ++i)
        batch.save_verifications.push_back(run_on_vf(fmt::format("r{}", i), "00000001", i));
    batch.save_verifications.push_back(run_on_vf("other", "00000002", 0));
    ASSERT_TRUE(store.commit(batch));

    auto const kept = store.verifications("00000001", RowRange{}).value().items;
    ASSERT_EQ(kept.size(), 100U);
    EXPECT_EQ(kept.front(), verification("r102", "00000001", 102)) << "newest first";
    EXPECT_EQ(kept.back().run, "r3");
    EXPECT_EQ(store.verifications("00000002", RowRange{}).value().items.size(), 1U);
    EXPECT_TRUE(store.verifications("00000003", RowRange{}).value().items.empty());
}

TEST_F(JournalTest, TwoHundredVerificationsAreKeptForEachVfWhateverAttachmentItHad) {
    auto store = open();
    Batch batch;
    for (int i = 0; i < 203; ++i)
        batch.save_verifications.push_back(
            run_on_vf(fmt::format("r{}", i), fmt::format("{:08x}", i / 70), i));
    batch.save_verifications.emplace_back(VfId{test::pf, 2}, verification("other", "00000002", 0));
    batch.save_verifications.emplace_back(VfId{{0, 2, 0, 0}, 1},
                                          verification("elsewhere", "00000002", 0));
    ASSERT_TRUE(store.commit(batch));

    auto const kept = store.verifications(VfId{test::pf, 1}, {}).value().items;
    ASSERT_EQ(kept.size(), 200U);
    EXPECT_EQ(kept.front(), verification("r202", "00000002", 202)) << "newest first";
    EXPECT_EQ(kept.back().run, "r3");
    EXPECT_EQ(store.verifications(VfId{test::pf, 2}, {}).value().items.size(), 1U);
    EXPECT_TRUE(store.verifications(VfId{test::pf, 3}, {}).value().items.empty());
}

TEST_F(JournalTest, AVerificationIsReplacedByItsRun) {
    auto store = open();
    auto changed = verification("r1", "00000001", 1);
    changed.verdict = Verdict::pending;
    Batch batch;
    batch.save_verifications = {{{test::pf, 1}, changed}, run_on_vf("r2", "00000001", 2)};
    ASSERT_TRUE(store.commit(batch));
    changed.verdict = Verdict::fail;
    changed.finished_at = test::at(9);
    batch.save_verifications = {{{test::pf, 1}, changed}};
    ASSERT_TRUE(store.commit(batch));
    EXPECT_EQ(store.verifications("00000001", RowRange{}).value().items,
              (std::vector{verification("r2", "00000001", 2), changed}));
}

}  // namespace
}  // namespace vfmgr
