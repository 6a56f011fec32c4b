// SPDX-License-Identifier: Apache-2.0
// Makes PFs' identities durable: with the first state that is stored of a PF, or after the first
// observation that reads its identity. Free functions; any thread.
#pragma once

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/store/store.hpp"

namespace vfmgr {

// Adds the PF's identity to `batch`, as far as it is not stored yet.
void keep_identity(Batch& batch, KernelView const& host, DesiredState const& desired,
                   PciAddress const& pf);

// Removes from `records` the steps on a PF whose address now belongs to another device: recovery
// must not undo them there. Returns a sentence for each that names what is not undone, and why.
// Changes to VMs' XML stay in `records`.
[[nodiscard]] std::vector<std::string> take_out_others(std::vector<JournalRecord>& records,
                                                       HostView const& host,
                                                       DesiredState const& desired);

}  // namespace vfmgr
