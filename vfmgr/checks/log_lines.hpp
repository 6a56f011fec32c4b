// SPDX-License-Identifier: Apache-2.0
// The kernel's log in whatever form it was kept: records of /dev/kmsg, dmesg with its options,
// journalctl, syslog's files. Views of the text, which outlives them; any thread.
#pragma once

#include <string_view>
#include <vector>

namespace vfmgr::checks {

struct LogLine {
    double seconds = 0;  // since boot; 0 where the log does not say, or has a date
    std::string_view text;
};

struct KernelLog {
    std::vector<LogLine> lines;
    bool from_boot = false;  // nothing has been overwritten
};

// Of each line what the kernel said: behind level, time, host and "kernel: ". What other programs
// said in syslog's files is left out.
[[nodiscard]] KernelLog parse_kernel_log(std::string_view text);

}  // namespace vfmgr::checks
