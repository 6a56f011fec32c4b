// SPDX-License-Identifier: Apache-2.0
// A file as a whole, or as it was before: written beside, synced, renamed. Any thread, and any
// process beside this one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::guest {

// The mode is the file's from the first byte on, whatever the umask. Nothing of a failure stays.
// kernel_refused, with the call as its cause and without a remedy: the caller knows what for.
[[nodiscard]] Result<void> replace_file(std::filesystem::path const& file, std::string_view text,
                                        mode_t mode);

}  // namespace vfmgr::guest
