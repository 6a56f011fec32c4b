// SPDX-License-Identifier: Apache-2.0
// Writes untrusted text to a terminal safely: names from guests, libvirt and the kernel must
// neither control it nor change the direction of the text around them. Pure except flush_output();
// any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr {

enum class Shown {
    word,  // newlines and tabs are escaped too
    text,  // newlines and tabs stay
    json,  // escaped as in JSON strings, so the document keeps its meaning
};

// Escapes controls (C0, DEL, C1), line separators and bidirectional controls, as "\x1b" or
// "\u202e", and bytes that are not UTF-8, as "\x9b".
[[nodiscard]] std::string escaped(std::string_view text, Shown as);

// Counts code points, as JSON Schema's maxLength does.
[[nodiscard]] std::size_t characters_in(std::string_view utf8);

// Fails if any write to standard output has failed.
[[nodiscard]] Result<void> flush_output();

}  // namespace vfmgr
