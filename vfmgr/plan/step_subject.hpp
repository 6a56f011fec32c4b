// SPDX-License-Identifier: Apache-2.0
// Which part of the host a step changes. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// None of the host; a PF or the host's network; or a VM, by its UUID.
using StepSubject = std::variant<std::monostate, KernelSubject, std::string>;
[[nodiscard]] StepSubject subject_of(Step const& step);

// The PF that the step is about: one whose state it changes, or whose VF it gives to a VM or takes
// from it.
[[nodiscard]] std::optional<PciAddress> pf_of(Step const& step);

}  // namespace vfmgr
