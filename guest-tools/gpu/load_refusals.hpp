// SPDX-License-Identifier: Apache-2.0
// Why the kernel refuses a module: what on this machine prevents it, reported before anything is
// loaded; and what kernel and modprobe reported when it was tried, with cause and remedy. Pure; any
// thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr::guest::gpu {

// `module` is spelled as in the kernel: "nvidia_peermem".
void check_kernel(checks::Machine const& machine, std::string const& module,
                  std::vector<Finding>& hindrances);

// Explains a failed modprobe from its output and from the kernel's log since it was started. Lines
// about this module become evidence. Accepts any bytes.
[[nodiscard]] Finding explain_refusal(std::string const& module, std::string_view modprobe_output,
                                      std::span<std::string const> logged);

}  // namespace vfmgr::guest::gpu
