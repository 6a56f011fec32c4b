// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream of kind transfer: writes to the guest's memory and reads it, as the
// guest orders, one order after the other. Waits for events, never spins. Owned by the responder;
// the destructor waits for the thread, a second at most. Transfers go over DC where the guest has a
// target and the host's device an initiator that reaches it; over RC otherwise.
#pragma once

#include <memory>

#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/rdma/dc.hpp"

namespace vfmgr::verify {

// `request` is of kind transfer.
[[nodiscard]] Result<std::unique_ptr<StreamEnd>> open_transfers(
    SessionPermit const& permit, StreamRequest const& request, ResponderLimits const& limits,
    Result<Mlx5> const& mlx5 = mlx5_here());

}  // namespace vfmgr::verify
