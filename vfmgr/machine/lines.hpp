// SPDX-License-Identifier: Apache-2.0
// Splits the texts of files and programs into lines, words and parts. Returns views of the text.
// Pure; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace vfmgr::checks {

// Returns the text up to `separator`, or all of it, and removes both from `rest`.
[[nodiscard]] inline std::string_view take_part(std::string_view& rest, char separator) {
    auto const part = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
}

[[nodiscard]] inline std::string_view take_line(std::string_view& rest) {
    return take_part(rest, '\n');
}

[[nodiscard]] inline std::vector<std::string_view> lines_in(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) lines.push_back(take_line(text));
    return lines;
}

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
    constexpr std::string_view around = " \t\r";
    auto const from = text.find_first_not_of(around);
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(around) - from + 1);
}

// Returns the words of a line, however they are spaced.
[[nodiscard]] inline std::vector<std::string_view> words_in(std::string_view text,
                                                            std::string_view between = " \t\r") {
    std::vector<std::string_view> words;
    for (auto from = text.find_first_not_of(between); from != text.npos;
         from = text.find_first_not_of(between)) {
        text.remove_prefix(from);
        words.push_back(text.substr(0, text.find_first_of(between)));
        text.remove_prefix(words.back().size());
    }
    return words;
}

[[nodiscard]] inline std::string lowered(std::string_view text) {
    std::string all(text);
    for (char& byte : all)
        if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
    return all;
}

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace vfmgr::checks
