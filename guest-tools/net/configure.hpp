// SPDX-License-Identifier: Apache-2.0
// Makes a VF's netdev what the host says, with an RDMA device, and takes it back. Waits by kernel
// events. One thread.
#pragma once

#include "guest-tools/net/state.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

// Up with MTU, carrier awaited, address with its ARP settings and source route, RDMA device:
// hardware's, or else SoftRoCE unless the network has rdma: none. An address that another machine
// has stops it, unless a run is wanted, which looks for that itself. `state` is saved as soon as
// there is something to clean up.
[[nodiscard]] Result<Configured> configure(GuestAttachment const& wanted, Netdev const& seen,
                                           StateFolder const& state, Deadline deadline);

// Removes what configure() made, and forgets it. Nothing of it stays when the netdev has gone.
[[nodiscard]] Result<void> clean_up(Configured const& configured, StateFolder const& state,
                                    Deadline deadline);

}  // namespace vfmgr::guest
