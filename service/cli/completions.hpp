// SPDX-License-Identifier: Apache-2.0
// What a value on vfctl's command line may be, as far as it is known here or to the daemon. One
// thread.
#pragma once

#include <string>
#include <vector>

#include "service/cli/session.hpp"

namespace vfmgr {

struct Completion {
    std::string value;
    std::string description{};
    bool operator==(Completion const&) const = default;
};

// The value of the only completion where the name of a file is expected.
inline constexpr auto files_marker = ":files";

// `kind` is the name of an argument or the type of an option: "PF", "VM", "FILE". `word` is what is
// typed of the value so far; completions that do not begin with it may be among the result. Without
// an answer of the daemon in a short time there are none of its objects.
[[nodiscard]] std::vector<Completion> completions(std::string const& kind, std::string const& word,
                                                  Options const& options);

// The values of an option whose type, as CLI11 prints it, ends with them: "FORMAT:{json,yaml}".
[[nodiscard]] std::vector<Completion> choices_of(std::string const& type);

}  // namespace vfmgr
