// SPDX-License-Identifier: Apache-2.0
// Puts a backup in the place of a stopped daemon's store, for vfctl. Blocks on files; any thread.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// A copy of a store, with the write-ahead log beside it, if the copy has one. It is only read.
struct StoreBackup {
    std::string path;
    std::ifstream file;
    std::ifstream log;  // not open: there is none
};
[[nodiscard]] Result<StoreBackup> open_backup(std::string const& path);

struct RestoredStore {
    std::optional<std::string>
        kept;  // where the store is now that was there; absent: there was none
    Time restored_at{};
};
// Checks that the backup is a store that this version can read, copies it beside `store`, gives it
// another id and the mark that it was restored, and renames it to `store` last; the store that was
// there is kept beside it. The file belongs to this process's user, mode 0600. Fails with
// unavailable while a daemon has the store open, and changes nothing then.
[[nodiscard]] Result<RestoredStore> restore_store(StoreBackup& backup, std::string const& store,
                                                  Time now);

}  // namespace vfmgr
