// SPDX-License-Identifier: Apache-2.0
// A store at its own limit: history makes room for what happens now, and what ends something finds
// room that nothing else may take.
#include <sqlite3.h>
#include <unistd.h>

#include "store_bench.hpp"

namespace vfmgr {
namespace {

class RoomTest : public test::StoreTest {
  protected:
    static constexpr StoreLimits small{400 * 1024};

    [[nodiscard]] std::uint64_t file_bytes() const { return std::filesystem::file_size(path()); }
};

Batch ended(std::uint32_t first, std::uint32_t count = 1) {
    Batch batch;
    for (auto number = first; number < first + count; ++number)
        batch.save_operations.push_back(
            test::operation(fmt::format("{:032x}", number), OperationState::failed, number));
    return batch;
}

Batch remembering(std::uint64_t number) {
    Batch batch;
    batch.save_events = {test::event(number, static_cast<std::uint16_t>(number % 50))};
    return batch;
}

// Tokens are never pruned.
std::size_t fill_for_good(Store& store) {
    std::size_t saved = 0;
    while (store.save_token({fmt::format("{:08x}", saved),
                             fmt::format("{:064x}", saved),
                             "viewer",
                             std::string(200, 'x'),
                             {},
                             {}}))
        ++saved;
    return saved;
}

Batch beginning(std::string const& id, OperationKind kind) {
    Batch batch;
    batch.save_operations = {test::operation(id, OperationState::running)};
    batch.save_operations[0].kind = kind;
    return batch;
}

Batch detaching(std::uint32_t seq) {
    Batch batch;
    batch.save_records = {{"detach", test::record(seq, ResetVf{{test::pf, 1}})}};
    return batch;
}

TEST_F(RoomTest, TheOldestOperationsMakeRoom) {
    auto store = open(small);
    ASSERT_TRUE(store.commit(beginning("running", OperationKind::attach)));
    for (std::uint32_t number = 1; number <= 1500; ++number) {
        auto const done = store.commit(ended(number));
        ASSERT_TRUE(done) << number << ": " << done.error().detail;
    }
    EXPECT_LE(file_bytes(), small.bytes_max);
    EXPECT_TRUE(store.operation(fmt::format("{:032x}", 1500)).value()) << "the newest";
    EXPECT_FALSE(store.operation(fmt::format("{:032x}", 1)).value());
    EXPECT_EQ(store.unfinished().value().size(), 1U) << "what runs is never forgotten";
}

TEST_F(RoomTest, CertificatesGoLast) {
    auto store = open(small);
    auto returned = remembering(1);
    returned.save_events[0].kind = EventKind::detached;
    returned.save_events[0].attachment = "00000001";
    ASSERT_TRUE(store.commit(returned));
    for (std::uint64_t number = 2; number <= 1500; ++number)
        ASSERT_TRUE(store.commit(remembering(number))) << number;
    EXPECT_EQ(store.events("00000001").value(), returned.save_events);
    auto const kept = store.events_after(1, 1).value();
    EXPECT_GT(kept.events.front().number, 2U) << "others made room";
    EXPECT_EQ(kept.pruned, kept.events.front().number - 1) << "which is known";
}

TEST_F(RoomTest, WhatEndsAnAttachmentHasAReserve) {
    auto store = open(small);
    Batch attached;
    attached.save_attachments = {test::attachment(1)};
    ASSERT_TRUE(store.commit(attached));
    EXPECT_GT(fill_for_good(store), 100U);
    int begun = 0;  // in pages with room left
    while (begun < 100 &&
           store.commit(beginning(fmt::format("attach{}", begun), OperationKind::attach)))
        ++begun;
    EXPECT_LT(begun, 100);

    ASSERT_TRUE(store.commit(beginning("detach", OperationKind::detach)));
    for (std::uint32_t seq = 1; seq <= 20; ++seq) EXPECT_TRUE(store.commit(detaching(seq))) << seq;
    auto end = beginning("detach", OperationKind::detach);
    end.save_operations[0].state = OperationState::succeeded;
    end.erase_records_of = {"detach"};
    end.erase_attachments = {"00000001"};
    EXPECT_TRUE(store.commit(end));
    EXPECT_LE(file_bytes(), small.bytes_max);

    for (int i = 0; i < 60; ++i) ASSERT_EQ(store.erase_token(fmt::format("{:08x}", i)), true);
    EXPECT_TRUE(store.commit(beginning("attach", OperationKind::attach))) << "by itself";
}

// A full disk: SQLite's writes beyond `bytes` of a file fail with ENOSPC. With RLIMIT_FSIZE they
// fail with EFBIG, which SQLite takes for a broken disk.
class FullDisk {
  public:
    explicit FullDisk(std::uint64_t bytes) {
        room = bytes;
        EXPECT_EQ(set(reinterpret_cast<sqlite3_syscall_ptr>(&write)), SQLITE_OK);
    }
    ~FullDisk() { EXPECT_EQ(set(nullptr), SQLITE_OK); }
    FullDisk(FullDisk const&) = delete;
    FullDisk& operator=(FullDisk const&) = delete;

  private:
    static inline std::uint64_t room = 0;

    static ssize_t write(int fd, void const* data, std::size_t size, off_t at) {
        if (static_cast<std::uint64_t>(at) + size <= room) return ::pwrite(fd, data, size, at);
        errno = ENOSPC;
        return -1;
    }
    static int set(sqlite3_syscall_ptr call) {
        auto* const vfs = ::sqlite3_vfs_find(nullptr);
        auto const* const name = vfs->xGetSystemCall(vfs, "pwrite64") ? "pwrite64" : "pwrite";
        return vfs->xSetSystemCall(vfs, name, call);
    }
};

// A file system that others fill: pruning history would not empty it. The store has so much history
// here that it would prune some if its own limit were the reason.
TEST_F(RoomTest, AFullDiskCostsNoHistory) {
    constexpr StoreLimits limits{4 * 1024 * 1024};
    constexpr std::uint32_t each = 50;
    auto const first = fmt::format("{:032x}", 1);
    std::uint32_t most = 1;  // the number of operations that such a store has room for
    {
        auto full = open(limits);
        for (; full.commit(ended(most, each)) && full.operation(first).value(); most += each)
            ASSERT_LT(most, 100'000U);
    }
    std::filesystem::remove(path());
    auto const kept = most / 5 * 4;
    ASSERT_TRUE(open(limits).commit(ended(1, kept)));

    auto store = open(limits);
    {
        // Room for the eighth that is pruned at a time, and not for new records.
        FullDisk const disk(file_bytes() / 5);
        auto const refused = store.commit(ended(kept + 1, kept / 9 * 2));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().causes.at(0).code, "SQLITE_FULL");
        EXPECT_TRUE(store.operation(first).value());
    }
    EXPECT_TRUE(store.commit(ended(kept + 1, 1)));
    EXPECT_TRUE(store.operation(first).value());
}

AuditEntry refused(std::size_t bytes) {
    return {test::at(1000),          std::string(bytes, 'w'),
            std::string(bytes, 'i'), "POST /" + std::string(bytes, 'a'),
            std::string(bytes, 's'), std::string(bytes, 'o')};
}

TEST_F(RoomTest, AnEntryOfTheAuditIsCut) {
    auto store = open();
    auto entry = refused(16 * 1024);
    entry.subject = std::string(255, 's') + "é and more";  // cut before the letter, not in it
    ASSERT_TRUE(store.append_audits({entry}));
    auto const kept = store.audit({}, {1}).value().items.at(0);
    EXPECT_LE(kept.who.size() + kept.request_id.size() + kept.action.size() + kept.subject.size() +
                  kept.outcome.size(),
              900U);
    EXPECT_TRUE(kept.action.starts_with("POST /aaa"));
    EXPECT_TRUE(kept.action.ends_with("…"));
    EXPECT_EQ(kept.subject, std::string(255, 's') + "…");
}

// A client refused again and again displaces other refusals, but no record of what was done.
TEST_F(RoomTest, TheAuditHasALimitForWhatWasDoneAndForWhatWasRefused) {
    auto store = open();
    AuditEntry const done{test::at(1), "uid:0", "5d41", "POST /v1/attachments", "", "202"};
    ASSERT_TRUE(store.append_audits({done}));
    auto denied = refused(16 * 1024);
    denied.refused = true;
    denied.requests = 7;
    std::vector<AuditEntry> const many(10'000, denied);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(store.append_audits(many));
    auto const kept = store.audit({}, {}).value().items;
    EXPECT_EQ(kept.size(), 30'001U);
    EXPECT_EQ(kept.back(), done);
    EXPECT_EQ(kept.front().requests, 7U);
    EXPECT_LT(file_bytes(), 32U << 20U) << "half of what an audit may take";
}

}  // namespace
}  // namespace vfmgr
