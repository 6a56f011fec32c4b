// SPDX-License-Identifier: Apache-2.0
// Desired state: survives a reopening, and changes by whole batches only.
#include "store_bench.hpp"

namespace vfmgr {
namespace {

using test::attachment;
using test::desired_pf;
using test::pf;
using test::quarantine;

class DesiredStateTest : public test::StoreTest {};

GuestKeys keys_of(std::string const& attachment) {
    return {attachment, GuestSecret{"t", test::at(5)}, {GuestSecret{"k", test::at(6)}}};
}

// One of everything that a batch can hold.
Batch everything() {
    Batch batch;
    batch.save_pfs = {{pf, desired_pf()}, {{0, 2, 0, 0}, DesiredPf{}}};
    batch.save_attachments = {attachment(1), attachment(2)};
    batch.save_guest_keys = {keys_of("00000001"), keys_of("00000002")};
    batch.save_quarantines = {quarantine(3), quarantine(4)};
    batch.save_firmware_tries = {{pf, test::firmware_tries()}, {{0, 2, 0, 0}, {}}};
    for (auto const& [name, link] : test::rdma_links()) batch.save_rdma_links.push_back(link);
    batch.save_identities = {{pf, test::identity()}, {{0, 2, 0, 0}, {}}};
    batch.save_fleet = test::membership();
    batch.save_operations = {test::operation("op1", OperationState::running)};
    batch.save_verifications = {test::run_on_vf("run1", "00000001", 5)};
    batch.save_records = {{"op1", test::record(1, ResetVf{{pf, 1}})}};
    return batch;
}

DesiredState expected() {
    DesiredState state;
    state.pfs = {{pf, desired_pf()}, {{0, 2, 0, 0}, DesiredPf{}}};
    state.attachments = {{"00000001", attachment(1)}, {"00000002", attachment(2)}};
    state.guest_keys = {{"00000001", keys_of("00000001")}, {"00000002", keys_of("00000002")}};
    state.quarantine = {{{pf, 3}, quarantine(3)}, {{pf, 4}, quarantine(4)}};
    state.firmware_tries = {{pf, test::firmware_tries()}, {{0, 2, 0, 0}, {}}};
    state.rdma_links = test::rdma_links();
    state.identities = {{pf, test::identity()}, {{0, 2, 0, 0}, {}}};
    state.fleet = test::membership();
    return state;
}

// Counts the rows of what load() does not return.
std::vector<std::size_t> counts(Store& store) {
    auto const unfinished = store.unfinished().value();
    return {store.operations({}, {}).value().items.size(), unfinished.size(),
            unfinished.empty() ? 0 : unfinished[0].records.size(),
            store.verifications("00000001", RowRange{}).value().items.size()};
}

TEST_F(DesiredStateTest, BeginsEmpty) {
    auto store = open();
    EXPECT_EQ(store.load(), DesiredState{});
    EXPECT_EQ(counts(store), (std::vector<std::size_t>{0, 0, 0, 0}));
    EXPECT_TRUE(store.commit({})) << "nothing to do is done";
}

TEST_F(DesiredStateTest, IsKeptOverAReopening) {
    {
        auto store = open();
        ASSERT_TRUE(store.commit(everything()));
        EXPECT_EQ(store.load(), expected());
    }
    auto store = open();
    EXPECT_EQ(store.load(), expected());
    EXPECT_EQ(counts(store), (std::vector<std::size_t>{1, 1, 1, 1}));
}

TEST_F(DesiredStateTest, IsReplacedAndErasedByItsKeys) {
    auto store = open();
    ASSERT_TRUE(store.commit(everything()));
    Batch batch;
    batch.save_pfs = {{pf, desired_pf(2)}};
    batch.erase_pfs = {{0, 2, 0, 0}};
    batch.save_attachments = {attachment(2)};
    batch.save_attachments[0].state = AttachmentState::detaching;
    batch.erase_attachments = {"00000001"};
    batch.save_quarantines = {quarantine(4)};
    batch.save_quarantines[0].reason = "another";
    batch.erase_quarantines = {{pf, 3}};
    batch.save_firmware_tries = {{pf, test::firmware_tries()}};
    batch.save_firmware_tries[0].second.boots["NUM_OF_VFS"].emplace_back("another boot");
    batch.erase_firmware_tries = {{0, 2, 0, 0}};
    batch.save_rdma_links = {{{"siw0", SoftRdmaType::siw, "eno1"}, 1}};
    batch.erase_rdma_links = {"rxe0"};
    batch.save_identities = {{pf, {}}};
    batch.erase_identities = {{0, 2, 0, 0}};
    ASSERT_TRUE(store.commit(batch));

    auto changed = expected();
    changed.pfs = {{pf, desired_pf(2)}};
    changed.attachments.erase("00000001");
    changed.guest_keys.erase("00000001");
    changed.attachments["00000002"].state = AttachmentState::detaching;
    changed.quarantine.erase({pf, 3});
    changed.firmware_tries.erase({0, 2, 0, 0});
    changed.firmware_tries[pf].boots["NUM_OF_VFS"].emplace_back("another boot");
    changed.quarantine[{pf, 4}].reason = "another";
    changed.rdma_links = {{"siw0", {{"siw0", SoftRdmaType::siw, "eno1"}, 1}}};
    changed.identities = {{pf, {}}};
    EXPECT_EQ(store.load(), changed);
}

TEST_F(DesiredStateTest, ErasingWhatIsNotThereIsNoError) {
    auto store = open();
    Batch batch;
    batch.erase_pfs = {pf};
    batch.erase_attachments = {"00000001"};
    batch.erase_quarantines = {{pf, 1}};
    batch.erase_rdma_links = {"rxe9"};
    batch.erase_records_of = {"op1"};
    EXPECT_TRUE(store.commit(batch));
}

// A record of an operation that was never saved is refused last, after everything else was written.
TEST_F(DesiredStateTest, ABatchIsAllOrNothing) {
    auto store = open();
    auto batch = everything();
    batch.save_records.push_back({"nobody's", test::record(1, ResetVf{{pf, 1}})});
    auto const refused = store.commit(batch);
    ASSERT_FALSE(refused);
    test::expect_unavailable(refused.error(), path());
    EXPECT_EQ(store.load(), DesiredState{});
    EXPECT_EQ(counts(store), (std::vector<std::size_t>{0, 0, 0, 0}));

    ASSERT_TRUE(store.commit(everything())) << "and the next one is not disturbed";
    Batch erasing;
    erasing.erase_attachments = {"00000001", "00000002"};
    erasing.erase_pfs = {pf};
    erasing.save_records = batch.save_records;
    EXPECT_FALSE(store.commit(erasing));
    EXPECT_EQ(store.load(), expected()) << "what was erased before the error is back";
}

TEST_F(DesiredStateTest, IsMovedWithItsStore) {
    auto first = open();
    ASSERT_TRUE(first.commit(everything()));
    Store second = std::move(first);
    EXPECT_EQ(second.load(), expected());
}

}  // namespace
}  // namespace vfmgr
