// SPDX-License-Identifier: Apache-2.0
// Which files are a store, who owns it, and the errors for files that are not.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_bench.hpp"

namespace vfmgr {
namespace {

class OpeningTest : public test::StoreTest {
  protected:
    // Makes a closed store with an attachment in it.
    void make() const {
        auto store = open();
        Batch batch;
        batch.save_pfs = {{test::pf, test::desired_pf()}};
        batch.save_attachments = {test::attachment(1)};
        batch.save_operations = {test::operation("op1", OperationState::running)};
        batch.save_records = {{"op1", test::record(1, ResetVf{{test::pf, 1}})}};
        batch.save_verifications = {test::run_on_vf("run1", "00000001", 5)};
        ASSERT_TRUE(store.commit(batch));
    }
    [[nodiscard]] mode_t mode(std::string const& suffix = "") const {
        struct stat status{};
        EXPECT_EQ(::stat((path() + suffix).c_str(), &status), 0) << suffix;
        return status.st_mode & 0777;
    }
};

TEST_F(OpeningTest, TheFileIsPrivateWhateverTheUmask) {
    auto const before = ::umask(0);
    auto store = open();
    ASSERT_TRUE(store.append_audits({AuditEntry{}}));
    ::umask(before);
    EXPECT_EQ(mode(), 0600U);
    EXPECT_EQ(mode("-wal"), 0600U);
}

TEST_F(OpeningTest, ARestoredBackupIsMadePrivate) {
    make();
    ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
    EXPECT_EQ(open().load().value().attachments.size(), 1U);
    EXPECT_EQ(mode(), 0600U);
}

TEST_F(OpeningTest, ASymbolicLinkIsNotFollowed) {
    auto const elsewhere = folder_ / "elsewhere";
    std::ofstream(elsewhere) << "";
    std::filesystem::create_symlink(elsewhere, path());
    test::expect_unavailable(refusal_to_open(), path());
    EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
}

TEST_F(OpeningTest, AFolderThatIsMissingOrNoneIsNamed) {
    std::ofstream(folder_ / "file") << "";
    for (auto const* name : {"missing/vfmgr.db", "file/vfmgr.db", ""}) {
        auto const place = (folder_ / name).string();
        auto const store = Store::open(place);
        ASSERT_FALSE(store) << place;
        test::expect_unavailable(store.error(), place);
        ASSERT_EQ(store.error().causes.size(), 1U);
        EXPECT_EQ(store.error().causes[0].call, "open");
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "missing")) << "nothing is made in passing";
}

TEST_F(OpeningTest, AnEmptyFileBecomesAStore) {
    std::ofstream(path()) << "";
    EXPECT_EQ(open().load(), DesiredState{});
}

TEST_F(OpeningTest, AFileThatIsNoDatabaseIsLeftAlone) {
    std::string const text(5000, 'a');
    std::ofstream(path()) << text;
    auto const error = refusal_to_open();
    test::expect_unavailable(error, path());
    EXPECT_NE(error.detail.find("it is not a database"), std::string::npos) << error.detail;
    ASSERT_EQ(error.causes.size(), 1U);
    EXPECT_EQ(error.causes[0].code, "SQLITE_NOTADB");
    EXPECT_TRUE(bytes() == text);
}

TEST_F(OpeningTest, ADatabaseOfAnotherProgramIsLeftAlone) {
    for (auto const* sql :
         {"CREATE TABLE theirs (a)", "PRAGMA application_id = 5", "PRAGMA user_version = 1"}) {
        std::filesystem::remove(path());
        execute(sql);
        auto const before = bytes();
        auto const error = refusal_to_open();
        test::expect_unavailable(error, path());
        EXPECT_NE(error.detail.find("another program"), std::string::npos) << error.detail;
        EXPECT_TRUE(bytes() == before) << sql;
    }
}

TEST_F(OpeningTest, AFormFromTheFutureIsRefusedUntilTheNewerVfmgrdIsBack) {
    make();
    execute("PRAGMA user_version = 20; CREATE TABLE future (a)");
    auto const before = bytes();
    auto const error = refusal_to_open();
    test::expect_unavailable(error, path());
    EXPECT_NE(error.detail.find("has schema 20; this vfmgrd knows up to 19"), std::string::npos)
        << error.detail;
    EXPECT_EQ(error.remedy, "install the vfmgrd that wrote it, or a newer one");
    EXPECT_TRUE(bytes() == before);
    execute("PRAGMA user_version = 19");
    EXPECT_EQ(open().load().value().attachments.at("00000001"), test::attachment(1));
}

TEST_F(OpeningTest, DamageIsNoticed) {
    make();
    auto damaged = bytes();
    ASSERT_GT(damaged.size(), 8192U);
    for (std::size_t i = 4096; i < damaged.size(); ++i) damaged[i] = '\x5a';
    std::ofstream(path(), std::ios::binary) << damaged;
    auto const error = refusal_to_open();
    test::expect_unavailable(error, path());
    EXPECT_NE(error.remedy.find("restore it from a backup"), std::string::npos) << error.remedy;
}

TEST_F(OpeningTest, ATruncatedFileIsNoticed) {
    make();
    std::filesystem::resize_file(path(), 8192);
    test::expect_unavailable(refusal_to_open(), path());
}

// Another process, because the lock is between processes. It dies as by a power cut, and what was
// reported to it as durable is there.
TEST_F(OpeningTest, HasOneOwnerWhoseWritesSurviveItsDeath) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    pid_t const child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto store = Store::open(path());
        Batch batch;
        batch.save_attachments = {test::attachment(1)};
        if (!store || !store->commit(batch) || ::write(pipe[1], "r", 1) != 1) ::_exit(1);
        while (true) ::pause();
    }
    ::close(pipe[1]);
    char ready = 0;
    EXPECT_EQ(::read(pipe[0], &ready, 1), 1) << "the other process could not write";
    ::close(pipe[0]);

    auto const error = refusal_to_open();
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    test::expect_unavailable(error, path());
    EXPECT_NE(error.detail.find("another process has it open"), std::string::npos) << error.detail;
    EXPECT_EQ(open().load().value().attachments.at("00000001"), test::attachment(1));
}

// The error names a row that can't be parsed: none is skipped, because an attachment missed here
// would be attached twice.
TEST_F(OpeningTest, ARowThatCannotBeReadIsNamed) {
    struct Row {
        char const *sql, *named;
        Error (*read)(Store&);
    };
    auto const load = [](Store& store) { return store.load().error(); };
    auto const unfinished = [](Store& store) { return store.unfinished().error(); };
    for (auto const& [sql, named, read] :
         {Row{"UPDATE attachments SET document = '{}'", "attachment 00000001", load},
          Row{"UPDATE attachments SET document = '{'", "attachment 00000001", load},
          Row{"UPDATE pfs SET document = '{\"revision\": -1}'", "PF 0000:01:00.0", load},
          Row{"UPDATE pfs SET pci = 'x'", "PF x", load},
          Row{"INSERT INTO quarantine VALUES ('0000:01:00.0', 2, '[]')",
              "quarantined VF 0000:01:00.0/2", load},
          Row{"UPDATE operations SET document = 'null'", "operation op1", unfinished},
          Row{"UPDATE steps SET step = '{\"step\": \"teleport\"}'", "step 1 of operation op1",
              unfinished},
          Row{"UPDATE steps SET undo = '[{}]'", "the undo of step 1 of operation op1", unfinished},
          Row{"UPDATE steps SET undo = '{}'", "the undo of step 1 of operation op1", unfinished},
          Row{"UPDATE states SET state = 'doing'", "step 1 of operation op1", unfinished},
          Row{"DELETE FROM states", "step 1 of operation op1", unfinished},
          Row{"UPDATE operations SET document = ''", "operation op1",
              [](Store& store) { return store.operation("op1").error(); }},
          Row{"UPDATE operations SET document = ''", "operation op1",
              [](Store& store) { return store.operations({}, {}).error(); }},
          Row{"UPDATE verifications SET document = ''", "verification run1",
              [](Store& store) { return store.verifications("00000001", RowRange{}).error(); }}}) {
        std::filesystem::remove(path());
        make();
        execute(sql);
        auto store = open();
        auto const error = read(store);
        test::expect_unavailable(error, path());
        EXPECT_NE(error.detail.find(named), std::string::npos) << sql << ": " << error.detail;
    }
}

}  // namespace
}  // namespace vfmgr
