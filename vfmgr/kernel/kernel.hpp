// SPDX-License-Identifier: Apache-2.0
// The seam to the kernel. Implementations: RemoteKernel (worker processes), LinuxKernel (in them)
// and tests' FakeKernel. Called from operation threads; calls for different PFs may run
// at once, for one PF the caller holds its claim. Calls may block until `deadline` and beyond, when
// the kernel hangs.
#pragma once

#include <optional>

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// nullopt: everything.
using KernelScope = std::optional<PciAddress>;

struct Observed {
    // Best-effort attributes that were refused, and what could not be read back; a sentence each.
    std::vector<std::string> remarks;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    // A PF that can't be read is in the view as stale with a reason, never missing.
    [[nodiscard]] virtual Result<KernelView> observe(KernelScope const& scope) = 0;
    // Does the step, waits for its effect by kernel events, reads back. On error the step may be
    // half done; the caller undoes it. Steps whose end already holds succeed.
    [[nodiscard]] virtual Result<Observed> perform(KernelStep const& step, Deadline deadline) = 0;
};

}  // namespace vfmgr
