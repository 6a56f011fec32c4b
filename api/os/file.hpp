// SPDX-License-Identifier: Apache-2.0
// Reads and replaces whole files, and lists folders. Any thread; other processes may do the same.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "api/types/problem.hpp"

namespace vfmgr {

// Absent: it can't be read, and errno says why. A file of /proc or /sys is read to its end, too.
[[nodiscard]] std::optional<std::string> read_file(std::filesystem::path const& file);

// Returns the paths in a folder, sorted; sets `failed` if the folder can't be read to the end.
[[nodiscard]] std::vector<std::filesystem::path> paths_in(std::filesystem::path const& folder,
                                                          std::error_code& failed);
// Returns the paths that can be read, and ignores a failure.
[[nodiscard]] std::vector<std::filesystem::path> paths_in(std::filesystem::path const& folder);

// Replaces the file, or leaves it as it was: writes a draft beside it, syncs and renames it.
// The file has its mode from the first byte on, whatever the umask. A failure leaves nothing
// behind. Fails with kernel_refused, with the call as its cause and no remedy: the caller knows the
// purpose.
[[nodiscard]] Result<void> replace_file(std::filesystem::path const& file, std::string_view text,
                                        mode_t mode);

}  // namespace vfmgr
