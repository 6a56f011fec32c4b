// SPDX-License-Identifier: Apache-2.0
// What errors call the daemon that a client talks to: vfmgrd and vfmgr-fleetd share the code that
// refuses. A value; any thread.
#pragma once

#include <fmt/format.h>

#include <string>

namespace vfmgr {

struct Program {
    std::string unit = "vfmgrd";
    std::string settings = "/etc/vfmgr/vfmgr.toml";
    bool operator==(Program const&) const = default;
};

// "systemctl reload vfmgrd"
[[nodiscard]] inline std::string reload_command(Program const& program) {
    return fmt::format("systemctl reload {}", program.unit);
}

}  // namespace vfmgr
