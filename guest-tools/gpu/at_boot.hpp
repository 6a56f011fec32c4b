// SPDX-License-Identifier: Apache-2.0
// Keeps the module loaded over a boot: by a line for systemd-modules-load, or, where that comes too
// early, by vf-guest-peermem.service, which waits. Only what is ours is ever taken away.
// Blocks; any thread.
#pragma once

#include <string>

#include "guest-tools/gpu/load_peermem.hpp"

namespace vfmgr::guest::gpu {

enum class BootBy {
    nobody,  //
    file,    // ours in modules-load.d
    unit,    // vf-guest-peermem.service
    other,   // somebody else's line, or the GPU operator
};

struct AtBoot {
    BootBy by = BootBy::nobody;
    std::string detail;  // one sentence
};

// How it is to be, and why; changes nothing.
[[nodiscard]] AtBoot choose_at_boot(checks::Machine const& machine, std::string const& module);
// Does that.
[[nodiscard]] Result<AtBoot> keep_at_boot(Places const& places, std::string const& module);
// Takes both away, where they are ours.
[[nodiscard]] Result<AtBoot> leave_at_boot(Places const& places);

}  // namespace vfmgr::guest::gpu

template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::guest::gpu::BootBy>, 4>
    vfmgr::enum_names<vfmgr::guest::gpu::BootBy> = {{{vfmgr::guest::gpu::BootBy::nobody, "nobody"},
                                                     {vfmgr::guest::gpu::BootBy::file, "file"},
                                                     {vfmgr::guest::gpu::BootBy::unit, "unit"},
                                                     {vfmgr::guest::gpu::BootBy::other, "other"}}};
