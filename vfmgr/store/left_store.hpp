// SPDX-License-Identifier: Apache-2.0
// Reads what a stopped daemon has left: whether it ran since this host booted, and the attachments
// in its store. For vfctl, which must not take a missing answer for "none". It never changes the
// store. Free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// Below /run, which is empty after a boot.
inline constexpr auto start_mark_file = "/run/vfmgr/started";

// Records that vfmgrd runs, and where its store is. vfmgrd calls it before it attaches anything.
[[nodiscard]] Result<void> leave_start_mark(std::string const& file, std::string const& store);
// Returns the store's path; nullopt when no vfmgrd has run since this host booted.
[[nodiscard]] Result<std::optional<std::string>> read_start_mark(std::string const& file);

// Includes what was committed only to the write-ahead log, as after kill -9. Fails with unavailable
// when it can't be read: a running vfmgrd holds the store exclusively.
[[nodiscard]] Result<std::vector<Attachment>> read_attachments(std::string const& store);

}  // namespace vfmgr
