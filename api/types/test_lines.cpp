// SPDX-License-Identifier: Apache-2.0
#include "api/types/test_lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace vfmgr {
namespace {

constexpr std::size_t columns = 100;
constexpr std::string_view indent = "    ";

// Three digits or more, and never an exponent: 8.31, 61.3, 193, 94212.
std::string amount(double value) {
    bool const whole = std::floor(value) == value;
    return fmt::format("{:.{}f}", value, whole || value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

// The figures that matter: "108 of 1828 Mbit/s"; "p50 21.3 us, p99 40.1 us".
std::string headline(TestResult const& test) {
    std::vector<std::string> shown;
    auto const value = [&](char const* name) {
        auto const found = test.figures.find(name);
        return found == test.figures.end() ? std::string() : amount(found->second);
    };
    auto const add = [&](char const* name, std::string_view before, std::string_view after) {
        if (auto const text = value(name); !text.empty())
            shown.push_back(fmt::format("{}{}{}", before, text, after));
    };
    if (auto const carried = value("achievable_mbps"); !carried.empty())
        shown.push_back(fmt::format("{} of {} Mbit/s", value("bandwidth_mbps"), carried));
    else
        add("bandwidth_mbps", "", " Mbit/s");
    add("write_mib_per_s", "", " MiB/s written");
    add("read_mib_per_s", "", " MiB/s read");
    add("p50_us", "p50 ", " us");
    add("p99_us", "p99 ", " us");
    add("lost", "", " lost");
    if (test.figures.contains("mtu_bytes"))
        add("mtu_bytes", "MTU ", "");
    else
        add("round_trip_min_us", "round trip ", " us");
    if (test.bytes_checked > 0)
        shown.push_back(fmt::format("{} bytes checked", test.bytes_checked));
    return fmt::format("{}", fmt::join(shown, ", "));
}

std::string every_figure(TestResult const& test) {
    auto text = fmt::format("{}by {}", indent, enum_name(test.by));
    if (test.bytes_checked > 0 || test.mismatches > 0)
        text += fmt::format(", {} bytes checked, {} wrong", test.bytes_checked, test.mismatches);
    text += '\n';
    std::string line;
    for (auto const& [name, value] : test.figures) {
        bool const whole = std::floor(value) == value;
        auto const next =
            whole ? fmt::format("{} {:.0f}", name, value) : fmt::format("{} {:.6g}", name, value);
        if (!line.empty() && line.size() + next.size() + 3 > columns) {
            text += line + ",\n";
            line.clear();
        }
        line += (line.empty() ? std::string(indent) : ", ") + next;
    }
    return line.empty() ? text : text + line + "\n";
}

// Appends `more` to the line where it fits, or puts it below.
std::string with(std::string line, std::string_view joint, std::string const& more) {
    bool const fits = line.size() + joint.size() + more.size() <= columns;
    if (fits && !more.empty()) return fmt::format("{}{}{}\n", line, joint, more);
    line.erase(line.find_last_not_of(' ') + 1);
    return more.empty() ? line + "\n" : fmt::format("{}\n{}{}\n", line, indent, more);
}

}  // namespace

std::string test_lines(std::vector<TestResult> const& tests, Figures shown) {
    std::size_t width = 0;
    for (auto const& test : tests) width = std::max(width, test.name.size());
    std::string text;
    for (auto const& test : tests) {
        auto const figures = test.verdict == Verdict::pass ? headline(test) : std::string();
        auto line = fmt::format("  {:<{}}  {}  ", test.name, width, enum_name(test.verdict));
        line += figures;
        text += with(std::move(line), figures.empty() ? "" : ", ", test.detail);
        if (!test.remedy.empty()) text += fmt::format("{}remedy: {}\n", indent, test.remedy);
        if (shown == Figures::all) text += every_figure(test);
    }
    return text;
}

}  // namespace vfmgr
