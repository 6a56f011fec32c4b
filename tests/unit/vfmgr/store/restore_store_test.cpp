// SPDX-License-Identifier: Apache-2.0
// A backup in the place of a store: what is kept, what is marked, and what is refused.
#include "vfmgr/store/restore_store.hpp"

#include "store_bench.hpp"
#include "tests/unit/repository.hpp"

namespace vfmgr {
namespace {

struct RestoreStore : test::StoreTest {
    std::string const backup = folder_ / "backup.db";
    Time const now = test::at(1769860803000);

    // A store with one attachment, and a copy of it; then it gets another.
    void make() {
        Batch batch;
        batch.save_attachments = {test::attachment(1)};
        ASSERT_TRUE(open().commit(batch));
        std::filesystem::copy_file(path(), backup);
        batch.save_attachments = {test::attachment(2)};
        ASSERT_TRUE(open().commit(batch));
    }
    [[nodiscard]] Result<RestoredStore> restore() const {
        VFMGR_TRY(auto opened, open_backup(backup));
        return restore_store(opened, path(), now);
    }
    [[nodiscard]] std::size_t files() const {
        using Each = std::filesystem::directory_iterator;
        return static_cast<std::size_t>(std::distance(Each(folder_), Each()));
    }
};

TEST_F(RestoreStore, IsAsTheBackupAndMarked) {
    make();
    auto const id = open().id().value();
    auto const restored = restore();
    ASSERT_TRUE(restored) << restored.error().detail;
    auto store = open();
    auto const state = store.load().value();
    EXPECT_EQ(state.attachments.size(), 1U);
    EXPECT_EQ(state.restored_at, now);
    EXPECT_NE(store.id().value(), id) << "it is another store than the one that went on";
    Batch confirming;
    confirming.confirm_restored = true;
    ASSERT_TRUE(store.commit(confirming));
    EXPECT_FALSE(store.load()->restored_at);
}

TEST_F(RestoreStore, KeepsWhatWasThere) {
    make();
    auto const kept = restore()->kept.value();
    EXPECT_EQ(Store::open(kept)->load()->attachments.size(), 2U);
    auto const again = restore()->kept.value();
    EXPECT_NE(again, kept) << "in the same second";
    EXPECT_EQ(Store::open(kept)->load()->attachments.size(), 2U);
    EXPECT_EQ(Store::open(again)->load()->attachments.size(), 1U);
    auto const mode = std::filesystem::status(path()).permissions();
    EXPECT_EQ(static_cast<unsigned>(mode), 0600U);
}

TEST_F(RestoreStore, NeedsNoStoreThere) {
    make();
    std::filesystem::remove(path());
    auto const restored = restore();
    ASSERT_TRUE(restored) << restored.error().detail;
    EXPECT_FALSE(restored->kept);
    EXPECT_EQ(open().load()->attachments.size(), 1U);
}

TEST_F(RestoreStore, WaitsForNoDaemon) {
    make();
    auto const running = open();
    auto const refused = restore();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_NE(refused.error().remedy.find("systemctl stop"), std::string::npos);
    EXPECT_EQ(files(), 3U) << "the store with its log, and the backup";
}

// After kill -9, what was committed may be in the log alone.
TEST_F(RestoreStore, ReadsABackupsLog) {
    make();
    {
        auto running = open();
        Batch batch;
        batch.save_attachments = {test::attachment(3)};
        ASSERT_TRUE(running.commit(batch));
        std::filesystem::copy_file(path(), backup,
                                   std::filesystem::copy_options::overwrite_existing);
        std::filesystem::copy_file(path() + "-wal", backup + "-wal");
    }
    ASSERT_TRUE(restore());
    EXPECT_TRUE(open().load()->attachments.contains("00000003"));
}

TEST_F(RestoreStore, PutsADamagedStoreAside) {
    make();
    std::filesystem::resize_file(path(), 100);
    auto const restored = restore();
    ASSERT_TRUE(restored) << restored.error().detail;
    EXPECT_EQ(std::filesystem::file_size(*restored->kept), 100U);
}

TEST_F(RestoreStore, RefusesWhatIsNoStore) {
    make();
    auto const before = bytes();
    auto const refused = [&](std::string const& content) {
        std::ofstream(backup, std::ios::binary) << content;
        auto const restored = restore();
        EXPECT_FALSE(restored);
        return restored ? std::string() : restored.error().detail;
    };
    EXPECT_NE(refused("").find("is empty"), std::string::npos);
    EXPECT_NE(refused("no database at all, but long enough to be taken for one").find(backup),
              std::string::npos);
    std::filesystem::remove(backup);
    EXPECT_NE(restore().error().detail.find("can't be read"), std::string::npos);
    SQLite::Database(backup, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec("CREATE TABLE theirs (a)");
    EXPECT_NE(restore().error().detail.find("database of another program"), std::string::npos);
    EXPECT_TRUE(bytes() == before);
    EXPECT_EQ(files(), 2U);
}

TEST_F(RestoreStore, TakesABackupOfAnEarlierForm) {
    make();
    std::filesystem::remove(backup);
    std::ifstream file(test::repository() / "tests/fixtures/store-forms/form-18.sql");
    std::ostringstream sql;
    sql << file.rdbuf();
    SQLite::Database(backup, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(sql.str());
    auto const restored = restore();
    ASSERT_TRUE(restored) << restored.error().detail;
    EXPECT_EQ(open().load()->restored_at, now);
}

}  // namespace
}  // namespace vfmgr
