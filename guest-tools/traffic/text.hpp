// SPDX-License-Identifier: Apache-2.0
// The findings of a stream test, for people and for programs: a line each second, and the summary.
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "guest-tools/traffic/tally.hpp"

namespace vfmgr::stream {

// "  3 s  8493 packets/s  100.0 Mbit/s  8493 packets  12501696 bytes  lost 0 …", without a newline.
[[nodiscard]] std::string describe(Interval const& second);
// "in main memory".
[[nodiscard]] std::string describe(RingPlace const& ring);
// Several lines, with what to do about each way in which packets were lost.
[[nodiscard]] std::string describe(Summary const& summary);

[[nodiscard]] nlohmann::json document(Interval const& second);
[[nodiscard]] nlohmann::json document(Summary const& summary);

}  // namespace vfmgr::stream
