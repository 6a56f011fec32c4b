// SPDX-License-Identifier: Apache-2.0
// The guest's side of reachability and path MTU: UDP over the VF only. It runs before RDMA, which
// would only report "transport retry counter exceeded". One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/echo.hpp"

namespace vfmgr::verify {

struct EchoTest {
    GuestAttachment attachment;
    std::string ifname;
    Deadline deadline;
};

[[nodiscard]] Measured reachability(EchoTest const& test);
[[nodiscard]] Measured path_mtu(EchoTest const& test);

}  // namespace vfmgr::verify
