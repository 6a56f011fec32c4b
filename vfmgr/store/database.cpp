// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/store/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "api/os/descriptor.hpp"

namespace vfmgr {
namespace {

struct Explanation {
    char const* code;
    char const* why;
    char const* remedy;
};

Explanation explain(int sqlite_code) {
    switch (sqlite_code & 0xff) {
        case SQLITE_FULL:
            return {"SQLITE_FULL", "the disk or the store is full",
                    "free space on its file system; vfmgrd is read-only until then"};
        case SQLITE_READONLY:
            return {"SQLITE_READONLY", "it is read-only",
                    "make the file and its file system writable for vfmgrd"};
        case SQLITE_BUSY:
            return {"SQLITE_BUSY", "another process has it open",
                    "stop the other vfmgrd: a store has one owner"};
        case SQLITE_CORRUPT:
            return {"SQLITE_CORRUPT", "it is damaged",
                    "restore it from a backup, or move it away to begin with an empty one"};
        case SQLITE_NOTADB:
            return {"SQLITE_NOTADB", "it is not a database",
                    "name another file as the store, or move this one away"};
        case SQLITE_IOERR:
            return {"SQLITE_IOERR", "reading or writing failed", "check the disk that holds it"};
        case SQLITE_CANTOPEN:
            return {"SQLITE_CANTOPEN", "it or its journal cannot be opened",
                    "check that its folder exists and that vfmgrd may write there"};
        case SQLITE_CONSTRAINT:
            return {"SQLITE_CONSTRAINT", "a row contradicts another", "report this as a bug"};
        default:
            return {"SQLITE_ERROR", "SQLite refused", "see the cause"};
    }
}

char const* participle(Access access) {
    return access == Access::read ? "read" : "written";
}

tl::unexpected<Error> cannot(std::string const& path, std::string const& what, char const* call) {
    Error error{Problem::unavailable, {}, "check that its folder exists and belongs to vfmgrd"};
    error.causes.push_back(errno_cause(call, errno));
    error.detail = fmt::format("the store {} cannot be {}: {}", path, what, error.causes[0].text);
    return fail(std::move(error));
}

// SQLite would create the file with the umask's mode; the journal beside it takes the file's mode.
Result<void> make_private_file(std::string const& path) {
    FileDescriptor const file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return cannot(path, "opened", "open");
    if (::fchmod(file.get(), 0600) != 0) return cannot(path, "made private", "fchmod");
    auto const folder = std::filesystem::absolute(path).parent_path().string();
    FileDescriptor const parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.get()) != 0) return cannot(path, "made durable", "fsync");
    return {};
}

// A small store has a small reserve.
std::uint64_t reserve_of(StoreLimits const& limits) {
    return std::min(limits.reserve_bytes, limits.bytes_max / 4);
}

// Returns the number of pages without the reserve.
std::int64_t prepare(SQLite::Database& db, StoreLimits const& limits) {
    db.execAndGet("PRAGMA journal_mode = WAL");
    db.exec("PRAGMA synchronous = FULL");  // in WAL mode: an fsync at each commit
    db.exec("PRAGMA foreign_keys = ON");
    auto const page_bytes = db.execAndGet("PRAGMA page_size").getInt64();
    auto const pages = static_cast<std::int64_t>(limits.bytes_max) / page_bytes;
    db.execAndGet(fmt::format("PRAGMA max_page_count = {}", pages));
    return pages - static_cast<std::int64_t>(reserve_of(limits)) / page_bytes;
}

Error damaged(Store::Impl const& store, std::string const& verdict) {
    auto const why = explain(SQLITE_CORRUPT);
    Error error = store.other_error(Access::read, why.why);
    error.remedy = why.remedy;
    error.causes.push_back({"PRAGMA quick_check", why.code, verdict});
    return error;
}

}  // namespace

Error Store::Impl::sqlite_error(Access access, SQLite::Exception const& refused) const {
    auto const why = explain(refused.getErrorCode());
    Error error{Problem::unavailable,
                fmt::format("the store {} cannot be {}: {}", path, participle(access), why.why),
                why.remedy};
    error.causes.push_back({"sqlite", why.code, refused.what()});
    return error;
}

Error Store::Impl::other_error(Access access, std::string_view why) const {
    return {Problem::unavailable,
            fmt::format("the store {} cannot be {}: {}", path, participle(access), why),
            "see the daemon's log"};
}

Error Store::Impl::unreadable(std::string_view what, Error const& why) const {
    Error error{
        Problem::unavailable,
        fmt::format("the store {} holds {} that cannot be read: {}", path, what, why.detail),
        "install the vfmgrd that wrote it, or restore the store from a backup"};
    error.violations = why.violations;
    return error;
}

Result<Store> Store::open(std::string const& path) {
    return open(path, StoreLimits{});
}

Result<Store> Store::open(std::string const& path, StoreLimits const& limits) {
    VFMGR_CHECK(make_private_file(path));
    // The in-memory stand-in gives sqlite_error() the path if opening itself fails.
    constexpr int busy_milliseconds_max = 1000;
    auto impl = std::make_unique<Impl>(path, SQLite::Database(":memory:"));
    VFMGR_CHECK(impl->guarded(Access::read, [&](SQLite::Database& db) -> Result<void> {
        db = SQLite::Database(path, SQLite::OPEN_READWRITE, busy_milliseconds_max);
        // One owner. Without this WAL would need shared memory, and a second vfmgrd could write
        // what this one never reads.
        db.exec("PRAGMA locking_mode = EXCLUSIVE");
        if (auto ours = check_form(*impl); !ours) return ours;
        impl->ordinary_pages_max = prepare(db, limits);
        auto const verdict = db.execAndGet("PRAGMA quick_check(1)").getString();
        if (verdict != "ok") return fail(damaged(*impl, verdict));
        return {};
    }));
    VFMGR_CHECK(migrate(*impl));
    return Store(std::move(impl));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

}  // namespace vfmgr
