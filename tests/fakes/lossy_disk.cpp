// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/lossy_disk.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace vfmgr {

namespace {

constexpr int path_bytes_max = 4096;
constexpr int sector_bytes = 4096;

// SQLite allocates the memory; `base` comes first, as SQLite requires.
struct Handle {
    sqlite3_file base;
    LossyDisk* disk;
    std::shared_ptr<LossyDisk::File> file;
};

Handle& handle_of(sqlite3_file* file) {
    return *reinterpret_cast<Handle*>(file);
}

void put(std::string& content, std::size_t offset, std::string const& bytes) {
    if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
    content.replace(offset, bytes.size(), bytes);
}

}  // namespace

// Implements SQLite's C interface (sqlite.org/vfs.html).
struct LossyDiskMethods {
    static LossyDisk& disk_of(sqlite3_vfs* vfs) { return *static_cast<LossyDisk*>(vfs->pAppData); }

    static int close(sqlite3_file* file) {
        handle_of(file).~Handle();
        return SQLITE_OK;
    }
    static int read(sqlite3_file* file, void* to, int count, sqlite3_int64 offset) {
        auto& [base, disk, content] = handle_of(file);
        std::lock_guard const lock(disk->mutex_);
        auto const begin = std::min(static_cast<std::size_t>(offset), content->now.size());
        auto const there = std::min(static_cast<std::size_t>(count), content->now.size() - begin);
        std::memset(to, 0, static_cast<std::size_t>(count));
        std::memcpy(to, content->now.data() + begin, there);
        return there == static_cast<std::size_t>(count) ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    }
    static int write(sqlite3_file* file, void const* from, int count, sqlite3_int64 offset) {
        auto& [base, disk, content] = handle_of(file);
        std::lock_guard const lock(disk->mutex_);
        std::string bytes(static_cast<char const*>(from), static_cast<std::size_t>(count));
        put(content->now, static_cast<std::size_t>(offset), bytes);
        content->unsynced.push_back({static_cast<std::size_t>(offset), std::move(bytes)});
        return SQLITE_OK;
    }
    static int truncate(sqlite3_file* file, sqlite3_int64 size) {
        auto& [base, disk, content] = handle_of(file);
        std::lock_guard const lock(disk->mutex_);
        content->now.resize(static_cast<std::size_t>(size));
        return SQLITE_OK;
    }
    static int sync(sqlite3_file* file, int) {
        auto& [base, disk, content] = handle_of(file);
        if (disk->on_sync) disk->on_sync("before a sync");
        {
            std::lock_guard const lock(disk->mutex_);
            content->synced = content->now;
            content->there_when_synced = true;
            content->unsynced.clear();
            // SQLite does not sync the folder after it removes a journal. Journaling file systems
            // write folder changes with the next sync.
            std::erase_if(disk->files_, [](auto const& entry) { return entry.second->deleted; });
        }
        if (disk->on_sync) disk->on_sync("after a sync");
        return SQLITE_OK;
    }
    static int size(sqlite3_file* file, sqlite3_int64* size) {
        auto& [base, disk, content] = handle_of(file);
        std::lock_guard const lock(disk->mutex_);
        *size = static_cast<sqlite3_int64>(content->now.size());
        return SQLITE_OK;
    }
    // One process, one connection: there is no other client to lock out.
    static int lock(sqlite3_file*, int) { return SQLITE_OK; }
    static int is_locked(sqlite3_file*, int* locked) {
        *locked = 0;
        return SQLITE_OK;
    }
    static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
    static int sector_size(sqlite3_file*) { return sector_bytes; }
    static int characteristics(sqlite3_file*) { return 0; }

    static sqlite3_io_methods const io;

    static int open(sqlite3_vfs* vfs, char const* path, sqlite3_file* file, int, int* flags) {
        auto& disk = disk_of(vfs);
        std::lock_guard const lock(disk.mutex_);
        auto content = std::make_shared<LossyDisk::File>();
        if (path) {  // without: a temporary file, never opened again by name
            auto& known = disk.files_[path];
            if (!known || known->deleted) known = content;
            content = known;
        }
        ::new (file) Handle{{&io}, &disk, std::move(content)};
        if (flags) *flags |= SQLITE_OPEN_READWRITE;
        return SQLITE_OK;
    }
    static int remove(sqlite3_vfs* vfs, char const* path, int sync_folder) {
        auto& disk = disk_of(vfs);
        std::lock_guard const lock(disk.mutex_);
        auto const found = disk.files_.find(path);
        if (found == disk.files_.end() || found->second->deleted) return SQLITE_IOERR_DELETE_NOENT;
        found->second->deleted = true;
        if (sync_folder) disk.files_.erase(found);
        return SQLITE_OK;
    }
    static int access(sqlite3_vfs* vfs, char const* path, int, int* there) {
        auto& disk = disk_of(vfs);
        std::lock_guard const lock(disk.mutex_);
        auto const found = disk.files_.find(path);
        *there = found != disk.files_.end() && !found->second->deleted ? 1 : 0;
        return SQLITE_OK;
    }
    static int full_path(sqlite3_vfs*, char const* path, int count, char* to) {
        sqlite3_snprintf(count, to, "%s", path);
        return SQLITE_OK;
    }
};

sqlite3_io_methods const LossyDiskMethods::io = {
    1,           close,           read, write, truncate, sync, size, lock, lock, is_locked, control,
    sector_size, characteristics, {},   {},    {},       {},   {},   {}};

LossyDisk::LossyDisk() : before_(sqlite3_vfs_find(nullptr)) {
    vfs_ = *before_;  // randomness, time and the like stay the system's
    vfs_.szOsFile = sizeof(Handle);
    vfs_.mxPathname = path_bytes_max;
    vfs_.zName = "lossy-disk";
    vfs_.pAppData = this;
    vfs_.pNext = nullptr;
    vfs_.xOpen = LossyDiskMethods::open;
    vfs_.xDelete = LossyDiskMethods::remove;
    vfs_.xAccess = LossyDiskMethods::access;
    vfs_.xFullPathname = LossyDiskMethods::full_path;
    sqlite3_vfs_register(&vfs_, 1);
}

LossyDisk::~LossyDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(before_, 1);
}

LossyDisk::Files LossyDisk::after_crash(Survives survives) const {
    std::lock_guard const lock(mutex_);
    Files files;
    for (auto const& [path, file] : files_) {
        bool const there =
            survives == Survives::all_writes ? !file->deleted : file->there_when_synced;
        if (!there) continue;
        auto content = survives == Survives::all_writes ? file->now : file->synced;
        for (std::size_t i = 0; survives == Survives::reordered && i < file->unsynced.size();
             i += 2)
            put(content, file->unsynced[i].offset, file->unsynced[i].bytes);
        files.emplace(path, std::move(content));
    }
    return files;
}

void LossyDisk::start_from(Files const& files) {
    std::lock_guard const lock(mutex_);
    files_.clear();
    for (auto const& [path, content] : files)
        files_[path] = std::make_shared<File>(File{content, content, true, false, {}});
}

}  // namespace vfmgr
