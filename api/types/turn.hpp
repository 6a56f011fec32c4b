// SPDX-License-Identifier: Apache-2.0
// A place in a host's queue: a responder answers with it instead of a refusal while others are
// served first. Values.
#pragma once

#include <cstdint>
#include <variant>

#include "api/types/json_fwd.hpp"

namespace vfmgr {

// The guest keeps its place by asking again, and loses it when it stops asking.
struct Turn {
    std::uint32_t position = 1;  // 1: next
    std::uint32_t seconds = 1;   // estimated
    bool own = false;            // only sessions or streams of the same VM are ahead
    bool operator==(Turn const&) const = default;
};

template <class T>
using OrTurn = std::variant<T, Turn>;

extern template struct Json<Turn>;

}  // namespace vfmgr
