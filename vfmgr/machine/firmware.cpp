// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/firmware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

using Column = std::optional<FirmwareValue> FirmwareParameter::*;

// Parses what follows "Configurations:". Without column names, the values are those after the
// card's next reset.
std::vector<Column> columns_of(std::string_view header) {
    constexpr std::array<std::pair<std::string_view, Column>, 3> known{
        {{"Default", &FirmwareParameter::by_default},
         {"Current", &FirmwareParameter::current},
         {"Next Boot", &FirmwareParameter::next}}};
    std::vector<Column> columns;
    while (!header.empty()) {
        auto const* const found = std::ranges::find_if(
            known, [&](auto const& one) { return header.starts_with(one.first); });
        if (found == known.end()) return {};  // "New": an admin is about to set a value
        columns.push_back(found->second);
        header = trimmed(header.substr(found->first.size()));
    }
    if (columns.empty()) columns.push_back(&FirmwareParameter::next);
    return columns;
}

bool is_parameter_name(std::string_view name) {
    return !name.empty() && name.front() >= 'A' && name.front() <= 'Z' &&
           name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_[]") == name.npos;
}

FirmwareValue parse_value(std::string_view text) {
    constexpr DigitRules decimal{};
    auto const open = text.rfind('(');
    if (open != text.npos && text.ends_with(')'))
        if (auto const number =
                parse_digits(text.substr(open + 1, text.size() - open - 2), decimal))
            return {std::string(text.substr(0, open)), number};
    bool const hexadecimal = text.starts_with("0x");
    auto const number = hexadecimal ? parse_digits(text.substr(2), {.base = 16, .digits_max = 16})
                                    : parse_digits(text, decimal);
    return {std::string(text), number};
}

// Splits at blanks, and after a ")" that the next value touches: a long value fills its column.
std::vector<std::string_view> values_in(std::string_view row) {
    std::vector<std::string_view> values;
    while (!row.empty()) {
        auto const blank = std::min(row.find_first_of(" \t\r"), row.size());
        auto const bracket = row.find(')');
        auto const end = bracket < blank ? bracket + 1 : blank;
        if (end > 0) values.push_back(row.substr(0, end));
        row = trimmed(row.substr(end));
    }
    return values;
}

// True for a row of the table, and not for the sentences around it.
bool begins_as_parameter(std::string_view row) {
    if (row.starts_with('*')) row.remove_prefix(1);
    auto const values = values_in(row);
    return values.size() > 1 && is_parameter_name(values.front()) && values.front().size() > 2;
}

std::optional<FirmwareParameter> parse_row(std::string_view row,
                                           std::vector<Column> const& columns) {
    if (row.starts_with('*')) row.remove_prefix(1);
    auto values = values_in(row);
    if (values.size() != columns.size() + 1 || !is_parameter_name(values.front()))
        return std::nullopt;
    FirmwareParameter parameter{std::string(values.front()), {}, {}, {}};
    for (std::size_t i = 0; i < columns.size(); ++i)
        parameter.*columns[i] = parse_value(values[i + 1]);
    return parameter;
}

}  // namespace

bool FirmwareValue::same_as(FirmwareValue const& other) const {
    return number && other.number ? number == other.number : text == other.text;
}

std::string to_string(FirmwareValue const& value) {
    if (!value.number || parse_value(value.text).number) return value.text;
    return fmt::format("{}({})", value.text, *value.number);
}

bool FirmwareParameter::pending() const {
    return current && next && !current->same_as(*next);
}

FirmwareParameter const* FirmwareConfiguration::find(std::string_view name) const {
    auto const found = std::ranges::find(parameters, name, &FirmwareParameter::name);
    return found == parameters.end() ? nullptr : &*found;
}

FirmwareConfiguration parse_firmware_configuration(std::string_view output) {
    constexpr std::string_view device = "Device #", header = "Configurations:";
    FirmwareConfiguration configuration;
    std::vector<Column> columns;
    bool in_table = false, in_device = false;
    while (!output.empty()) {
        auto const line = trimmed(take_line(output));
        if (line.starts_with(device) && in_device) break;
        in_device |= line.starts_with(device);
        auto const value_behind = [&](std::string_view key) {
            return std::string(trimmed(line.substr(key.size())));
        };
        if (line.starts_with(header)) {
            columns = columns_of(value_behind(header));
            in_table = !columns.empty();
            configuration.shows_current |=
                std::ranges::find(columns, &FirmwareParameter::current) != columns.end();
        } else if (in_table) {
            if (auto parameter = parse_row(line, columns))
                configuration.parameters.push_back(std::move(*parameter));
            else if (begins_as_parameter(line))
                configuration.not_understood.emplace_back(line);
        } else if (line.starts_with("Device type:")) {
            configuration.device_type = value_behind("Device type:");
        } else if (line.starts_with("Device:")) {
            configuration.device = value_behind("Device:");
        }
    }
    return configuration;
}

std::string firmware_query(std::string_view tool, PciAddress const& function) {
    return fmt::format("{} -e -d {} q", tool, to_string(function));
}

}  // namespace vfmgr::checks
