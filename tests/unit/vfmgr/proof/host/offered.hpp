// SPDX-License-Identifier: Apache-2.0
// For tests that expect an offer, and no turn.
#pragma once

#include <fmt/format.h>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::test {

template <class T>
Result<T> offered(Result<OrTurn<T>> answer) {
    if (!answer) return fail(std::move(answer).error());
    if (auto const* const turn = std::get_if<Turn>(&*answer))
        return fail(Problem::unavailable, fmt::format("turn {}", turn->position));
    return std::get<T>(std::move(*answer));
}

}  // namespace vfmgr::test
