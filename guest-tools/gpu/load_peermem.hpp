// SPDX-License-Identifier: Apache-2.0
// Why the kernel refuses a module: what on this machine prevents it, reported before anything is
// loaded; and what kernel and modprobe reported when it was tried, with cause and remedy. Pure; any
// thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"
#include "guest-tools/gpu/peermem_plan.hpp"
#include "vfmgr/machine/facts.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::guest::gpu {

// `module` is spelled as in the kernel: "nvidia_peermem".
void check_kernel(checks::Machine const& machine, std::string const& module,
                  std::vector<Finding>& hindrances);

// Explains a failed modprobe from its output and from the kernel's log since it was started. Lines
// about this module become evidence. Accepts any bytes.
[[nodiscard]] Finding explain_refusal(std::string const& module, std::string_view modprobe_output,
                                      std::span<std::string const> logged);

// Loads on request the module that lets the NIC reach GPU memory: follows the plan, waits for what
// the plan awaits, and explains a refusal with the kernel's messages. Blocks; any thread.

// The parts of this machine that tests replace.
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
