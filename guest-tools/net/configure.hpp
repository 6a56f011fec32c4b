// SPDX-License-Identifier: Apache-2.0
// Configures a VF's netdev as the host requires, with an RDMA device, and undoes it. Waits for the
// kernel's events. One thread.
#pragma once

#include "guest-tools/net/state.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

// Sets the netdev up with its MTU, waits for the carrier, sets the address with its ARP settings
// and source route, and provides the RDMA device: hardware's, or else SoftRoCE. If the network has
// rdma: none, it neither waits for the one nor adds the other. Fails when another machine has the
// address, unless a run is requested, which checks that itself. Saves `state` as soon as there is
// something to clean up.
[[nodiscard]] Result<Configured> configure(GuestAttachment const& desired, Netdev const& known,
                                           StateFolder const& state, Deadline deadline);

// Removes what configure() set up, and its state. A netdev that has gone took all of it along but
// the source route's rule, which is removed then, too.
[[nodiscard]] Result<void> clean_up(Configured const& configured, StateFolder const& state,
                                    Deadline deadline);

}  // namespace vfmgr::guest
