// SPDX-License-Identifier: Apache-2.0
// The interface to the kernel. Implementations: RemoteKernel (worker processes), LinuxKernel
// (inside them) and the tests' FakeKernel. Called from operation threads; calls for different
// subjects may run at once, and the caller holds the subject's claim. Calls may block until
// `deadline`, and beyond it when the kernel hangs.
#pragma once

#include <chrono>
#include <optional>

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// The limit for any kernel step. The waits for a worker to end and the unit's TimeoutStopSec allow
// for it.
inline constexpr std::chrono::seconds longest_kernel_step{180};

// nullopt: everything.
using KernelScope = std::optional<KernelSubject>;

struct Observed {
    // One sentence each: best-effort attributes that were refused, values that could not be read
    // back, and what to check after the step.
    std::vector<std::string> remarks;
    // The VF's counters right before its reset; absent for other steps or when not reported.
    std::optional<VfCounters> counters{};
    // The VM as the step read it back in the end: libvirt need not be asked for the same again.
    // Absent for steps of the kernel.
    std::optional<HypervisorView> vm{};
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    // A PF that can't be read is in the view as stale with a reason, never missing.
    [[nodiscard]] virtual Result<KernelView> observe(KernelScope const& scope) = 0;
    // Does the step, waits for its effect by kernel events, reads back. On error the step may be
    // half done; the caller undoes it. A step whose effect is already there succeeds.
    [[nodiscard]] virtual Result<Observed> perform(KernelStep const& step, Deadline deadline) = 0;
    // Reads all ConnectX cards, or that of `function`; there may be none. Takes seconds for a card,
    // so it is no part of observe(). A card that can't be read has the reason.
    [[nodiscard]] virtual Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) = 0;
    // Reads what went through the VFs of all PFs, or of this one. Not part of observe(): a driver
    // may ask its firmware for each VF. A PF that can't be read has the reason.
    [[nodiscard]] virtual Result<std::vector<PfTraffic>> read_traffic(
        std::optional<PciAddress> const& pf) = 0;
};

}  // namespace vfmgr
