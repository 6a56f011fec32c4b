// SPDX-License-Identifier: Apache-2.0
// An in-memory disk under SQLite that knows what a killed process and what a power failure leave on
// it. While it lives it is SQLite's default VFS; one at a time. Any thread.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vfmgr {

// all_writes: the process was killed, the kernel writes what it has. synced: the power failed, and
// only what xSync() flushed is there. reordered: the power failed while the disk had written every
// second write since.
enum class Survives { all_writes, synced, reordered };

class LossyDisk {
  public:
    using Files = std::map<std::string, std::string>;  // content by path

    LossyDisk();
    ~LossyDisk();
    LossyDisk(LossyDisk const&) = delete;
    LossyDisk& operator=(LossyDisk const&) = delete;

    [[nodiscard]] Files after_crash(Survives survives) const;
    // The machine is on again, with these files.
    void start_from(Files const& files);
    // Called before and after each xSync(), without the lock. Set while nothing is open.
    std::function<void(std::string const& when)> on_sync;

    struct File {
        struct Write {
            std::size_t offset = 0;
            std::string bytes;
        };
        std::string now;
        std::string synced;
        bool there_when_synced = false;
        bool deleted = false;
        std::vector<Write> unsynced;
    };

  private:
    friend struct LossyDiskMethods;
    sqlite3_vfs vfs_{};
    sqlite3_vfs* before_ = nullptr;
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<File>> files_;  // guarded by mutex_
};

}  // namespace vfmgr
