// SPDX-License-Identifier: Apache-2.0
// Several verifications, each of another VF: one after the other, or all at once, which finds VFs
// that are well alone and not together. Blocking.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "guest-tools/net/vf_report.hpp"

namespace vfmgr::guest {

struct OneVerification {
    std::string attachment;
    // Blocking. Calls `ready` once when only the tests are left to do, and begins them when that
    // returns; not at all when it can't test. At once: on a thread of its own.
    std::function<Result<VfReport>(std::function<void()> const& ready)> run;
};

enum class Order { one_by_one, at_once };

// Told of each as it ends, never of two at a time; at once: on that one's thread.
using OnEnd = std::function<void(std::string const& attachment, Result<VfReport>)>;

// At once, no tests begin before all are ready or have given up, and a report says with whom.
void verify_all(std::vector<OneVerification> const& all, Order order, OnEnd const& on_end);

}  // namespace vfmgr::guest
