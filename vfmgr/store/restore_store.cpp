// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/store/restore_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "api/os/descriptor.hpp"
#include "api/os/random.hpp"
#include "vfmgr/store/database.hpp"

namespace vfmgr {
namespace {

// The bytes that SQLite locks (its file format, 1.3.1 "The Lock-Byte Page"): whoever has the file
// open exclusively, as vfmgrd has, holds some of them.
constexpr off_t lock_bytes_at = 0x40000000;
constexpr off_t lock_bytes = 512;

constexpr auto log_suffix = "-wal";
constexpr auto index_suffix = "-shm";

tl::unexpected<Error> no_copy(std::string const& path, char const* call, int error) {
    return fail({Problem::unavailable,
                 fmt::format("{} can't be written", path),
                 "check that its folder has room, and run this as root",
                 {errno_cause(call, error)}});
}

// Removes what an earlier try has left, and makes the file anew: nobody else has it open.
Result<void> make_anew(std::string const& path) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    FileDescriptor const made(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    return made ? Result<void>() : no_copy(path, "open", errno);
}

Result<void> copy_to(std::string const& path, std::ifstream& from) {
    VFMGR_CHECK(make_anew(path));
    std::ofstream out(path, std::ios::binary);
    if (from.peek() != std::ifstream::traits_type::eof()) out << from.rdbuf();
    out.close();
    if (!out || from.bad()) return no_copy(path, "write", EIO);
    return {};
}

Result<void> sync(std::string const& path, int flags) {
    FileDescriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
    if (!file || ::fsync(file.get()) != 0) return no_copy(path, "fsync", errno);
    return {};
}

// Held until the descriptor closes: no daemon opens the store meanwhile. Not open: there is none.
Result<FileDescriptor> lock(std::string const& store) {
    FileDescriptor file(::open(store.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file && errno == ENOENT) return file;
    if (!file) return no_copy(store, "open", errno);
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    whole.l_start = lock_bytes_at;
    whole.l_len = lock_bytes;
    if (::fcntl(file.get(), F_OFD_SETLK, &whole) == 0) return file;
    if (errno != EACCES && errno != EAGAIN) return no_copy(store, "fcntl", errno);
    return fail(Problem::unavailable, fmt::format("a daemon has the store {} open", store),
                "stop it first: systemctl stop vfmgrd.socket vfmgrd.service");
}

// Opens the draft in place of `store`'s database, whose path names the backup in errors.
Result<void> open_draft(Store::Impl& store, std::string const& draft) {
    return store.guarded(Access::read, [&](SQLite::Database& db) -> Result<void> {
        db = SQLite::Database(draft, SQLite::OPEN_READWRITE);
        if (db.execAndGet("SELECT count(*) FROM sqlite_schema").getInt() == 0)
            return fail(Problem::unavailable, fmt::format("{} is empty", store.path),
                        "name the copy of a vfmgr.db");
        if (auto ours = check_form(store); !ours) return ours;
        auto const verdict = db.execAndGet("PRAGMA quick_check(1)").getString();
        if (verdict == "ok") return {};
        return fail(Problem::unavailable, fmt::format("{} is damaged: {}", store.path, verdict),
                    "name another backup");
    });
}

Result<void> mark(std::string const& draft, std::string const& backup, Time now) {
    Store::Impl store{backup, SQLite::Database(":memory:")};
    VFMGR_CHECK(open_draft(store, draft));
    VFMGR_CHECK(migrate(store));
    VFMGR_CHECK(store.in_transaction(Room::reserve, [&](SQLite::Database& db) -> Result<void> {
        auto const* const set = "INSERT OR REPLACE INTO host VALUES (?, ?)";
        execute(db, set, "store", random_hex(16));
        execute(db, set, "restored", std::to_string(milliseconds_of(now)));
        return {};
    }));
    // One file, so that one rename puts it there.
    return store.guarded(Access::write, [](SQLite::Database& db) -> Result<void> {
        db.execAndGet("PRAGMA journal_mode = DELETE");
        return {};
    });
}

Result<void> rename(std::string const& from, std::string const& to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return no_copy(to, "rename", errno);
}

std::string unused_name(std::string const& store, Time now) {
    auto const second = std::chrono::floor<std::chrono::seconds>(now);
    auto const stem = fmt::format("{}.replaced-{}", store, second.time_since_epoch().count());
    auto name = stem;
    for (int n = 2; std::filesystem::exists(name); ++n) name = fmt::format("{}-{}", stem, n);
    return name;
}

}  // namespace

Result<StoreBackup> open_backup(std::string const& path) {
    StoreBackup backup{path, std::ifstream(path, std::ios::binary), {}};
    std::error_code ignored;
    if (!backup.file || !std::filesystem::is_regular_file(path, ignored))
        return fail(Problem::not_found, fmt::format("the backup {} can't be read", path),
                    "name the copy of a vfmgr.db, and run this as root");
    backup.log.open(path + log_suffix, std::ios::binary);
    return backup;
}

Result<RestoredStore> restore_store(StoreBackup& backup, std::string const& store, Time now) {
    auto const draft = store + ".restoring";
    std::error_code ignored;
    for (auto const* const suffix : {log_suffix, index_suffix, "-journal"})
        std::filesystem::remove(draft + suffix, ignored);
    VFMGR_TRY(FileDescriptor const locked, lock(store));
    VFMGR_CHECK(copy_to(draft, backup.file));
    if (backup.log.is_open()) VFMGR_CHECK(copy_to(draft + log_suffix, backup.log));
    auto const marked = mark(draft, backup.path, now);
    if (!marked) {
        std::filesystem::remove(draft, ignored);
        return fail(marked.error());
    }
    VFMGR_CHECK(sync(draft, 0));
    RestoredStore restored{{}, now};
    if (locked) {
        restored.kept = unused_name(store, now);
        VFMGR_CHECK(rename(store, *restored.kept));
        // What it has committed to its log alone belongs to it, and to no other.
        if (std::filesystem::exists(store + log_suffix, ignored))
            VFMGR_CHECK(rename(store + log_suffix, *restored.kept + log_suffix));
    }
    std::filesystem::remove(store + log_suffix, ignored);
    std::filesystem::remove(store + index_suffix, ignored);
    VFMGR_CHECK(rename(draft, store));
    auto const folder = std::filesystem::absolute(store).parent_path().string();
    VFMGR_CHECK(sync(folder, O_DIRECTORY));
    return restored;
}

}  // namespace vfmgr
