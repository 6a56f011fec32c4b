// SPDX-License-Identifier: Apache-2.0
// Finds the VM behind a vsock CID. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Includes the start id: CIDs are reused at once when a VM stops (LIBVIRT.md#vsock-cids).
struct VmIdentity {
    std::string uuid;
    std::string name;
    std::int32_t start_id = 0;
    bool operator==(VmIdentity const&) const = default;
};

// The running VM with this CID; an error when there is none, or more than one.
[[nodiscard]] Result<VmIdentity> vm_with_cid(HypervisorView const& view, std::uint32_t cid);

}  // namespace vfmgr
