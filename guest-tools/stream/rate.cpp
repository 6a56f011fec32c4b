// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "api/types/text.hpp"

namespace vfmgr::stream {
namespace {

constexpr double rate_max = 10e12;
constexpr std::size_t text_max = 32;

bool is_digit(char ch) {
    return ch >= '0' && ch <= '9';
}

// Takes k, m, g or t, and powers of 1024 with an i after them; leaves the unit.
double take_prefix(std::string_view& unit) {
    constexpr std::string_view prefixes = "kmgt";
    auto const at = unit.empty() ? std::string_view::npos : prefixes.find(unit.front());
    if (at == std::string_view::npos) return 1;
    unit.remove_prefix(1);
    bool const binary = unit.starts_with('i');
    if (binary) unit.remove_prefix(1);
    double factor = 1;
    for (std::size_t i = 0; i <= at; ++i) factor *= binary ? 1024 : 1000;
    return factor;
}

// Takes digits, and a point with digits if there is a fraction; leaves the rest.
std::optional<double> take_number(std::string_view& text) {
    double number = 0;
    double scale = 0;  // of the next digit after the point
    std::size_t digits = 0;
    for (; !text.empty() && (is_digit(text.front()) || (text.front() == '.' && scale == 0));
         text.remove_prefix(1)) {
        if (text.front() == '.') {
            scale = 0.1;
            continue;
        }
        ++digits;
        double const digit = text.front() - '0';
        number = scale == 0 ? number * 10 + digit : number + digit * scale;
        scale /= 10;
    }
    if (digits == 0) return std::nullopt;
    return number;
}

}  // namespace

Result<std::uint64_t> parse_rate(std::string_view text) {
    std::string lower(text.substr(0, text_max));
    std::ranges::transform(lower, lower.begin(), [](char ch) {
        return ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch;
    });
    std::string_view unit(lower);
    auto const number = take_number(unit);
    double factor = take_prefix(unit);
    bool good = number && text.size() <= text_max;
    if (unit == "bps")
        factor *= 8;
    else
        good = good && (unit == "bit" || (unit.empty() && factor == 1));
    // Ignores the error of a bit's fraction that binary fractions leave.
    double const rate = good ? std::floor(*number * factor + 1e-6) : 0;
    if (rate >= 1 && rate <= rate_max) return static_cast<std::uint64_t>(rate);
    return fail(Problem::invalid_request, fmt::format("{} is not a rate", quoted(text)),
                "write it as tc does: 100mbit, 2.5gbit, 500kbit; up to 10tbit");
}

}  // namespace vfmgr::stream
