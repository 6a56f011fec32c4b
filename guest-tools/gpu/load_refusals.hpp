// SPDX-License-Identifier: Apache-2.0
// Why the kernel takes no module: what is set against it on this machine, told before anything is
// loaded; and what kernel and modprobe said when it was tried, with cause and cure.
// Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr::guest::gpu {

// `module` as the kernel writes it: "nvidia_peermem".
void look_at_kernel(checks::Machine const& machine, std::string const& module,
                    std::vector<Finding>& hindrances);

// The words of a modprobe that failed, and what the kernel's log has had since it was started. The
// lines that are about this module become evidence. Any bytes.
[[nodiscard]] Finding explain_refusal(std::string const& module, std::string_view modprobe_said,
                                      std::span<std::string const> logged);

}  // namespace vfmgr::guest::gpu
