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

Result<std::map<std::string, std::string>> labels_of(std::vector<std::string> const& texts) {
    std::map<std::string, std::string> labels;
    if (texts == std::vector<std::string>{"none"}) return labels;
    for (auto const& text : texts) {
        auto const equals = text.find('=');
        if (equals == std::string::npos)
            return fail(Problem::invalid_request,
                        fmt::format("'{}' is not of the form KEY=VALUE", text),
                        "write --label rail=0, or --label none for no labels");
        if (!labels.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
            return fail(Problem::invalid_request,
                        fmt::format("label {} is given twice", text.substr(0, equals)),
                        "give each label once");
    }
    return labels;
}

}  // namespace vfmgr
