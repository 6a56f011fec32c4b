// SPDX-License-Identifier: Apache-2.0
// For parsers of lines: a parsed message is the same when it is written and parsed again.
#pragma once

#include <string_view>

#include "tests/fuzz/require.hpp"

// Returns what `parse` returns for the line.
template <class Parse>
auto round_trip(Parse parse, std::string_view line) {
    auto message = parse(line);
    if (!message) return message;
    auto const again = to_line(*message);
    auto const same = parse(std::string_view(again).substr(0, again.size() - 1));
    require(same && to_line(*same) == again);
    return message;
}
