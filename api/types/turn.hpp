// SPDX-License-Identifier: Apache-2.0
// What a host answers while others come first: not a refusal, but a place in its queue. Values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <variant>

namespace vfmgr {

// Who asks again keeps the place; who does not for a while, loses it.
struct Turn {
    std::uint32_t position = 1;  // 1: the next
    std::uint32_t seconds = 1;   // estimated
    bool own = false;            // what has to end first is the asker's own
    bool operator==(Turn const&) const = default;
};

template <class T>
using OrTurn = std::variant<T, Turn>;

class JsonReader;
void to_json(nlohmann::json& out, Turn const& turn);
void read(JsonReader& reader, Turn& turn);

}  // namespace vfmgr
