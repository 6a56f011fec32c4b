// SPDX-License-Identifier: Apache-2.0
// Several verifications, each of another VF: one after the other, or all at once, which finds VFs
// that work alone but not together. Blocking.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "guest-tools/net/vf_report.hpp"

namespace vfmgr::guest {

struct OneVerification {
    std::string attachment;
    // Blocking. Calls `ready` once when only the tests are left to do, and begins them when it
    // returns; does not call it when it can't test. At once: on a thread of its own.
    std::function<Result<VfReport>(std::function<void()> const& ready)> run;
};

enum class Order { one_by_one, at_once };

// Called with each as it ends, never for two at a time; at once: on that verification's thread.
using OnEnd = std::function<void(std::string const& attachment, Result<VfReport>)>;

// At once, no tests begin before all are ready or have given up, and a report names the others.
void verify_all(std::vector<OneVerification> const& all, Order order, OnEnd const& on_end);

}  // namespace vfmgr::guest
