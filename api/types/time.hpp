// SPDX-License-Identifier: Apache-2.0
// Wall-clock instants as RFC 3339 UTC with milliseconds; Clock is the source of time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace vfmgr {

using Time = std::chrono::system_clock::time_point;
using Deadline = std::chrono::steady_clock::time_point;

[[nodiscard]] std::string to_rfc3339(Time time);
[[nodiscard]] std::optional<Time> parse_rfc3339(std::string_view text);

// Injected wherever a decision depends on time, so that tests control it. Any thread.
class Clock {
  public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual Time now() const = 0;
    [[nodiscard]] virtual Deadline steady_now() const = 0;
};

[[nodiscard]] Clock& system_clock();

}  // namespace vfmgr
