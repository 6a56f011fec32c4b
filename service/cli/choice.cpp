// SPDX-License-Identifier: Apache-2.0
#include "service/cli/choice.hpp"

#include "api/types/text.hpp"

namespace vfmgr {

Result<std::uint32_t> number(std::string_view what, std::string_view text, std::uint32_t low,
                             std::uint32_t high) {
    auto const value = parse_digits(text, {.max = high});
    if (value && *value >= low) return static_cast<std::uint32_t>(*value);
    return fail(Problem::invalid_request,
                fmt::format("{} is a number from {} to {}, not '{}'", what, low, high, text),
                fmt::format("give a number in this range for {}", what));
}

}  // namespace vfmgr
