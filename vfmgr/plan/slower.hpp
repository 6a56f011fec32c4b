// SPDX-License-Identifier: Apache-2.0
// Decides whether a VF's figures fell against those of its own earlier runs. Pure.
#pragma once

#include <vector>

#include "api/types/verification.hpp"

namespace vfmgr {

// Returns one warning for each bandwidth or latency of a passed test of `run` that is clearly worse
// than before. `earlier`: the same VF's runs, the latest first, without `run`. Compares only with
// those that passed over the same path against the same responder: the last 10 that have the
// figure. With fewer than 5 there is no warning.
[[nodiscard]] std::vector<Warning> slower_than_before(Verification const& run,
                                                      std::vector<Verification> const& earlier);

}  // namespace vfmgr
