// SPDX-License-Identifier: Apache-2.0
// Text on somebody's terminal: names from guests, libvirt and the kernel must neither steer it nor
// turn the order in which the rest is read. And whether it got there. Pure but for flush_output();
// any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

enum class Shown {
    word,  // no new lines either
    text,  // its lines, and their tabs, are its own
    json,  // escaped as JSON does it: the same document
};

// Controls (C0, DEL, C1), line separators, and what sets the direction of writing become "\x1b" and
// "\u202e"; bytes that are no UTF-8 "\x9b".
[[nodiscard]] std::string escaped(std::string_view text, Shown as);

// Code points, which JSON Schema's maxLength counts.
[[nodiscard]] std::size_t characters_in(std::string_view utf8);

// An error when anything that was written to standard output did not get there.
[[nodiscard]] Result<void> flush_output();

}  // namespace vfmgr
