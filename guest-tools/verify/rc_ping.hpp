// SPDX-License-Identifier: Apache-2.0
// The guest's side of the RC ping: seeded sends that the host checks byte by byte, each answered
// with bytes that the guest can't know. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"

namespace vfmgr::verify {

[[nodiscard]] Measured rc_ping(Bench& bench);

}  // namespace vfmgr::verify
