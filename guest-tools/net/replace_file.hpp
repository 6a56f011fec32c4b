// SPDX-License-Identifier: Apache-2.0
// Replaces a file as a whole, or leaves it as it was: writes a draft beside it, syncs and renames
// it. Any thread, and any process beside this one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::guest {

// The file has its mode from the first byte on, whatever the umask. A failure leaves nothing
// behind. Fails with kernel_refused, with the call as its cause and no remedy: the caller knows the
// purpose.
[[nodiscard]] Result<void> replace_file(std::filesystem::path const& file, std::string_view text,
                                        mode_t mode);

}  // namespace vfmgr::guest
