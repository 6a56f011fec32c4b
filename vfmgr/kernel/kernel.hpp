// SPDX-License-Identifier: Apache-2.0
// The seam to the kernel. Implementations: RemoteKernel (worker processes), LinuxKernel (in them)
// and tests' FakeKernel. Called from operation threads; calls for different subjects may run
// at once, for one the caller holds its claim. Calls may block until `deadline` and beyond, when
// the kernel hangs.
#pragma once

#include <chrono>
#include <optional>

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// No step of the kernel is given more time; what waits for a worker to end, and the unit's
// TimeoutStopSec, fit it.
inline constexpr std::chrono::seconds longest_kernel_step{180};

// nullopt: everything.
using KernelScope = std::optional<KernelSubject>;

struct Observed {
    // Best-effort attributes that were refused, what could not be read back, and what to look at
    // after it; a sentence each.
    std::vector<std::string> remarks;
    // Of the VF, right before its reset; absent for other steps, and where its driver tells none.
    std::optional<VfCounters> counters{};
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    // A PF that can't be read is in the view as stale with a reason, never missing.
    [[nodiscard]] virtual Result<KernelView> observe(KernelScope const& scope) = 0;
    // Does the step, waits for its effect by kernel events, reads back. On error the step may be
    // half done; the caller undoes it. Steps whose end already holds succeed.
    [[nodiscard]] virtual Result<Observed> perform(KernelStep const& step, Deadline deadline) = 0;
    // The ConnectX cards, or the one that this is a function of; there may be none. Seconds for a
    // card, so it is asked for and no part of observe(). A card that can't be read says why.
    [[nodiscard]] virtual Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) = 0;
};

}  // namespace vfmgr
