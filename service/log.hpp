// SPDX-License-Identifier: Apache-2.0
// One line per event, with fields: to the journal if systemd started us, otherwise to stderr. Only
// main, run() and the control loop log; library code returns errors. Never logs a secret. Any
// thread; no state.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace vfmgr {

// The journal's priorities.
enum class Severity { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };

struct LogField {
    std::string_view name;  // lower_snake: "pf"; the journal's field is VFMGR_PF
    std::string value;
};

void log(Severity severity, std::string_view message, std::initializer_list<LogField> fields = {});

// Returns "message pf=0000:01:00.0 vm=\"my vm\"": quotes and escapes values with anything but plain
// characters, so that no value can pass for another field or line.
[[nodiscard]] std::string log_line(std::string_view message,
                                   std::initializer_list<LogField> fields);

}  // namespace vfmgr
