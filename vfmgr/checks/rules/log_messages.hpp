// SPDX-License-Identifier: Apache-2.0
// What drivers of NICs, and of the PCIe ports above them, print when something is wrong. Each was
// read in the driver's source (Linux 6.1), which its row names. Constants; any thread.
#pragma once

#include <span>
#include <string_view>

namespace vfmgr::checks {

enum class Weight {
    failed,   // the NIC, or a port of it, does not work
    warning,  // it works, but not as it should
    noise,    // an error in name only
};

struct LogMessage {
    std::string_view driver;  // empty: any driver
    std::string_view words;   // what its text contains
    Weight weight = Weight::noise;
    std::string_view detail;  // one sentence about the NIC; for noise, why it is none
    std::string_view remedy;
    std::string_view source;  // below drivers/ of Linux; "Linux …" is elsewhere
};
extern std::span<LogMessage const> const log_messages;

// Null for a message that is not in the table.
[[nodiscard]] LogMessage const* find_message(std::string_view driver, std::string_view text);

}  // namespace vfmgr::checks
