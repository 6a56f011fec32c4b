// SPDX-License-Identifier: Apache-2.0
// Loads on request the module that lets the NIC reach GPU memory: follows the plan, waits for what
// the plan awaits, and explains a refusal with the kernel's messages. Blocks; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "guest-tools/gpu/peermem_plan.hpp"
#include "vfmgr/checks/facts.hpp"

namespace vfmgr::guest::gpu {

// What tests replace of this machine.
struct Places {
    std::string root;                   // prefix of every path; empty: this machine
    std::string modprobe = "modprobe";  // programs, searched for in PATH
    std::string systemctl = "systemctl";
};

enum class PeermemEnd {
    not_needed,  // nothing to load
    was_loaded,
    loaded,       // now
    impossible,   // nothing was tried: see the plan's hindrances
    not_in_time,  // what is awaited did not appear
    refused,      // modprobe failed: see `refusal`
};

struct PeermemOutcome {
    PeermemEnd end = PeermemEnd::not_needed;
    PeermemPlan plan;  // the last one
    std::optional<Finding> refusal;
};

// Observes, waits at most until `wait_until` (not at all without it), loads, and observes again.
// Calls `report` with what is awaited each time that changes.
[[nodiscard]] Result<PeermemOutcome> load_peermem(
    Places const& places, PeermemOptions options, std::optional<Deadline> wait_until,
    std::function<void(std::string const&)> const& report);

[[nodiscard]] checks::Facts collect_facts(Places const& places);

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
