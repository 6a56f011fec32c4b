// SPDX-License-Identifier: Apache-2.0
// Parses the kernel's log in any form: records of /dev/kmsg, dmesg with its options, journalctl,
// syslog's files. Returns views of the text, which outlives them; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "vfmgr/machine/driver_log.hpp"

namespace vfmgr::checks {

struct LogLine {
    double seconds = 0;  // since boot; 0 if the log has none, or has a date
    std::string_view text;
    std::optional<int> level{};  // syslog's: 3 is an error, 4 a warning; most forms don't show it
    // The driver and device that print it. Parsed once, because many rules need it.
    std::optional<DeviceLine> by_device{};
};

struct KernelLog {
    std::vector<LogLine> lines;
    bool from_boot = false;  // nothing has been overwritten
};

// Keeps the kernel's text of each line: what follows level, time, host and "kernel: ". Drops other
// programs' lines in syslog's files.
[[nodiscard]] KernelLog parse_kernel_log(std::string_view text);

}  // namespace vfmgr::checks
