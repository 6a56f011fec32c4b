// SPDX-License-Identifier: Apache-2.0
// Returns the parts of the view that a plan starts from, or the refusal when they are missing or
// stale. Pure.
#pragma once

#include <string_view>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Points into `host`.
[[nodiscard]] Result<PfState const*> readable_pf(HostView const& host, PciAddress const& pf);
[[nodiscard]] Result<VmInfo const*> readable_vm(HostView const& host,
                                                std::string_view name_or_uuid);

// Checks that VFs can be made and removed now: no other PF blocks it.
[[nodiscard]] Result<void> require_free_pci(HostView const& host);
// Checks that one more device can be plugged into the running VM.
[[nodiscard]] Result<void> require_free_port(VmInfo const& vm);

}  // namespace vfmgr
