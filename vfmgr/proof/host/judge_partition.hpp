// SPDX-License-Identifier: Apache-2.0
// Whether both ends of a run are in the network's InfiniBand partition, and what the subnet manager
// lacks where they are not. The proofs fail then, too, and can't name the cause: a packet with
// another P_Key is dropped without a word. Pure.
#pragma once

#include <optional>

#include "vfmgr/proof/host/judge.hpp"

namespace vfmgr::verify {

// The test "partition"; nullopt where there were no queue pairs on InfiniBand. The guest's P_Key is
// its claim: that it is true is shown by the proofs, whose packets carry it.
[[nodiscard]] std::optional<TestResult> judge_partition(SessionPermit const& permit,
                                                        SessionFacts const& facts,
                                                        GuestReport const& report);

// For a guest that could not start a session: what its P_Key table lacks. nullopt if it lacks
// nothing, or the guest did not report it.
[[nodiscard]] std::optional<Warning> missing_partition(SessionPermit const& permit,
                                                       GuestReport const& report);

}  // namespace vfmgr::verify
