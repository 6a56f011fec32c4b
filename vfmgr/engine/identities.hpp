// SPDX-License-Identifier: Apache-2.0
// What PFs are becomes durable: with what is first kept of them, or after the first look that reads
// it. A free function; any thread.
#pragma once

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/store/store.hpp"

namespace vfmgr {

// Adds to `batch` what is to be kept of the PF and is not yet.
void keep_identity(Batch& batch, KernelView const& host, DesiredState const& desired,
                   PciAddress const& pf);

}  // namespace vfmgr
