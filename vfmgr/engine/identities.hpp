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

// What was done to a PF is not undone on another device that answers in its place now: such records
// go from `records`. Says of each what is not undone, and why. VMs' XML is put back all the same.
[[nodiscard]] std::vector<std::string> take_out_others(std::vector<JournalRecord>& records,
                                                       HostView const& host,
                                                       DesiredState const& desired);

}  // namespace vfmgr
