// SPDX-License-Identifier: Apache-2.0
// The parts of the view that a plan starts from, or the refusal when they are missing or stale.
// Pure.
#pragma once

#include <string_view>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Points into `host`.
[[nodiscard]] Result<PfState const*> readable_pf(HostView const& host, PciAddress const& pf);
[[nodiscard]] Result<VmInfo const*> readable_vm(HostView const& host,
                                                std::string_view name_or_uuid);

// VFs can be made and removed now: no other PF keeps them all out.
[[nodiscard]] Result<void> require_free_pci(HostView const& host);
// One device more can be plugged into it while it runs.
[[nodiscard]] Result<void> require_free_port(VmInfo const& vm);

}  // namespace vfmgr
