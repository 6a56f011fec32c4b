// SPDX-License-Identifier: Apache-2.0
// Keeps the module loaded across boots: by a line for systemd-modules-load or, where that runs too
// early, by vf-guest-peermem.service, which waits. Removes only what vf-guest set up. Blocks; any
// thread.
#pragma once

#include <string>

#include "guest-tools/gpu/load_peermem.hpp"

namespace vfmgr::guest::gpu {

enum class BootBy {
    nobody,
    file,   // vf-guest's own in modules-load.d
    unit,   // vf-guest-peermem.service
    other,  // a line that vf-guest did not write, or the GPU operator
};

struct AtBoot {
    BootBy by = BootBy::nobody;
    std::string detail;  // one sentence
};

// Chooses the way, with the reason; changes nothing.
[[nodiscard]] AtBoot choose_at_boot(checks::Machine const& machine, std::string const& module);
// Sets up what choose_at_boot() chooses.
[[nodiscard]] Result<AtBoot> keep_at_boot(Places const& places, std::string const& module);
// Removes both the file and the unit, where they are vf-guest's own.
[[nodiscard]] Result<AtBoot> leave_at_boot(Places const& places);

}  // namespace vfmgr::guest::gpu

template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::guest::gpu::BootBy>, 4>
    vfmgr::enum_names<vfmgr::guest::gpu::BootBy> = {{{vfmgr::guest::gpu::BootBy::nobody, "nobody"},
                                                     {vfmgr::guest::gpu::BootBy::file, "file"},
                                                     {vfmgr::guest::gpu::BootBy::unit, "unit"},
                                                     {vfmgr::guest::gpu::BootBy::other, "other"}}};
