// SPDX-License-Identifier: Apache-2.0
// GPU memory within reach of the NIC, when asked: `peermem`. Blocks; the main thread.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "guest-tools/command/options.hpp"

namespace vfmgr::guest::command {

// "90s", "10m", "1h": a second to a day.
[[nodiscard]] std::optional<std::chrono::seconds> parse_wait(std::string_view text);

// What vf-guest leaves with: 0 when it is loaded or not needed, 1 when it can't be or the kernel
// refused, 7 when what is awaited did not come.
[[nodiscard]] int run_peermem(Options const& options);

}  // namespace vfmgr::guest::command
