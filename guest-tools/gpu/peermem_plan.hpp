// SPDX-License-Identifier: Apache-2.0
// How the NICs of this machine can reach its GPUs' memory: by DMA-BUF, for which nothing is loaded,
// or by a module. Lists what that module waits for, and all that would make the kernel refuse it,
// found without loading anything (GPUDIRECT.md#why-it-does-not-load). Pure; values; any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/check.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::guest::gpu {

enum class PeermemNext {
    nothing,     // it is loaded, or nothing here needs it
    load,        // no known reason keeps it from loading
    wait,        // for what appears by itself: a driver that is being built or started
    impossible,  // the admin has to remedy something first
};

// What appears by itself, and the evidence that it is not there yet.
struct Awaited {
    std::string what;      // "NVIDIA's driver"
    std::string observed;  // "nvidia is not loaded"
    bool operator==(Awaited const&) const = default;
};

struct PeermemPlan {
    PeermemNext next = PeermemNext::nothing;
    std::string module;  // as modprobe takes it; empty where no GPU would need one
    bool loaded = false;
    std::string reason;  // for `next`, one sentence
    std::vector<Awaited> awaited;
    std::vector<Finding> hindrances;  // all of them, each with its remedy
    std::vector<std::string> remarks;
};

struct PeermemOptions {
    bool despite_dma_buf = false;  // for programs that do not support DMA-BUF
};
// Returns the finding as one of that rule.
[[nodiscard]] Finding of_rule(std::string rule, Finding finding);
[[nodiscard]] Finding failed_by(std::string rule, std::string detail, Remedy remedy,
                                std::vector<Evidence> evidence = {});

[[nodiscard]] PeermemPlan peermem_plan(checks::Machine const& machine, PeermemOptions options);

}  // namespace vfmgr::guest::gpu
