// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/pci_resource.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "api/types/text.hpp"

namespace vfmgr::checks {
namespace {

std::string_view next_part(std::string_view& text, char separator) {
    auto const end = std::min(text.find(separator), text.size());
    auto const part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

}  // namespace

std::vector<PciRegion> parse_pci_resource(std::string_view text) {
    constexpr std::size_t regions_max = 32;
    std::vector<PciRegion> regions;
    while (!text.empty() && regions.size() < regions_max) {
        auto line = next_part(text, '\n');
        std::array<std::uint64_t, 3> values{};
        for (auto& value : values) {
            auto const word = next_part(line, ' ');
            auto const number = word.starts_with("0x")
                                    ? parse_digits(word.substr(2), {.base = 16, .digits_max = 16})
                                    : std::nullopt;
            if (!number) return regions;
            value = *number;
        }
        if (!line.empty()) return regions;
        regions.push_back({values[0], values[1], values[2]});
    }
    return regions;
}

bool number_list_has(std::string_view list, int number) {
    list = next_part(list, '\n');  // older kernels end the file with "\n\0" (recorded)
    while (!list.empty()) {
        auto part = next_part(list, ',');
        auto const first = next_part(part, '-');
        auto const from = parse_digits(first, {.max = INT32_MAX});
        auto const to = part.empty() ? from : parse_digits(part, {.max = INT32_MAX});
        if (from && to && std::cmp_less_equal(*from, number) && std::cmp_less_equal(number, *to))
            return true;
    }
    return false;
}

}  // namespace vfmgr::checks
