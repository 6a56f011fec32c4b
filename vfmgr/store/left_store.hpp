// SPDX-License-Identifier: Apache-2.0
// What a daemon that is down has left: that it ran since this host booted, and the leases in its
// store. For vfctl, which must not take silence for "nothing is lent". Nothing of the store is
// changed. Free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// Below /run, which is empty after a boot.
inline constexpr auto start_mark_file = "/run/vfmgr/started";

// By vfmgrd, before it lends anything: that it ran, and where its store is.
[[nodiscard]] Result<void> leave_start_mark(std::string const& file, std::string const& store);
// The path of the store; nullopt: no vfmgrd has run since this host booted.
[[nodiscard]] Result<std::optional<std::string>> read_start_mark(std::string const& file);

// Also what was committed and is in the write-ahead log alone, after kill -9 for one. Problem
// unavailable when it can't be known: a vfmgrd that runs has the store to itself.
[[nodiscard]] Result<std::vector<Attachment>> read_leases(std::string const& store);

}  // namespace vfmgr
