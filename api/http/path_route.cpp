// SPDX-License-Identifier: Apache-2.0
#include "api/http/path_route.hpp"

#include <algorithm>

namespace vfmgr::http {
namespace {

constexpr std::size_t id_bytes_max = 64;
constexpr std::string_view id_place = "{}";

// Removes the first segment and the '/' after it from `rest`, and returns the segment.
std::string_view take_segment(std::string_view& rest) {
    auto const end = std::min(rest.find('/'), rest.size());
    auto const segment = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return segment;
}

}  // namespace

bool is_path_id(std::string_view text) {
    auto const allowed = [](char ch) {
        return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
               ch == '-';
    };
    return !text.empty() && text.size() <= id_bytes_max && std::ranges::all_of(text, allowed);
}

std::optional<std::vector<std::string>> ids_in_path(std::string_view pattern,
                                                    std::string_view path) {
    std::vector<std::string> ids;
    if (std::ranges::count(pattern, '/') != std::ranges::count(path, '/')) return std::nullopt;
    while (!pattern.empty() || !path.empty()) {
        auto const expected = take_segment(pattern);
        auto const given = take_segment(path);
        bool const is_id = expected == id_place;
        if (is_id ? !is_path_id(given) : expected != given) return std::nullopt;
        if (is_id) ids.emplace_back(given);
    }
    return ids;
}

}  // namespace vfmgr::http
