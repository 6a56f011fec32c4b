// SPDX-License-Identifier: Apache-2.0
// Loads what brings GPU memory to the NIC, when asked: by the plan, after what it waits for, and
// with the kernel's word for it. Blocks; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "guest-tools/gpu/peermem_plan.hpp"
#include "vfmgr/checks/facts.hpp"

namespace vfmgr::guest::gpu {

// What tests put in place of this machine.
struct Places {
    std::string root;                     // before every path; empty: this machine
    std::string modprobe = "modprobe";    // programs, looked for in PATH
    std::string systemctl = "systemctl";  //
};

enum class PeermemEnd {
    not_needed,   // nothing to load
    was_loaded,   //
    loaded,       // now
    impossible,   // nothing was tried: see the plan's hindrances
    not_in_time,  // what is awaited did not come
    refused,      // modprobe failed: see `refusal`
};

struct PeermemOutcome {
    PeermemEnd end = PeermemEnd::not_needed;
    PeermemPlan plan;                // the last
    std::optional<Finding> refusal;  //
};

// Looks, waits at most until `wait_until` (not at all without), loads, and looks again. `tell` is
// told what is awaited, each time that changes.
[[nodiscard]] Result<PeermemOutcome> load_peermem(
    Places const& places, PeermemWish wish, std::optional<Deadline> wait_until,
    std::function<void(std::string const&)> const& tell);

[[nodiscard]] checks::Facts look(Places const& places);

}  // namespace vfmgr::guest::gpu

template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::guest::gpu::PeermemEnd>, 6>
    vfmgr::enum_names<vfmgr::guest::gpu::PeermemEnd> = {
        {{vfmgr::guest::gpu::PeermemEnd::not_needed, "not_needed"},
         {vfmgr::guest::gpu::PeermemEnd::was_loaded, "was_loaded"},
         {vfmgr::guest::gpu::PeermemEnd::loaded, "loaded"},
         {vfmgr::guest::gpu::PeermemEnd::impossible, "impossible"},
         {vfmgr::guest::gpu::PeermemEnd::not_in_time, "not_in_time"},
         {vfmgr::guest::gpu::PeermemEnd::refused, "refused"}}};
