// SPDX-License-Identifier: Apache-2.0
// Contains exceptions. One that leaves a thread ends the program, and a single request must never
// do that. Pure; any thread.
#pragma once

#include <exception>
#include <type_traits>

#include "api/types/problem.hpp"

namespace vfmgr {

// Runs `work` and returns its Result; fails with internal if it throws.
template <class Work>
[[nodiscard]] std::invoke_result_t<Work> guarded(Work work) {
    try {
        return work();
    } catch (std::exception const& bug) {
        return fail(Problem::internal, std::string("an exception ended the request: ") + bug.what(),
                    "report this with the daemon's log");
    }
}

}  // namespace vfmgr
