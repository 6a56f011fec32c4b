// SPDX-License-Identifier: Apache-2.0
#include "service/cli/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "service/cli/yaml.hpp"

namespace vfmgr {
namespace {

// Counts code points: every UTF-8 octet except continuation octets begins one.
std::size_t width(std::string const& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void add_line(std::string& out, std::vector<std::string> const& cells,
              std::vector<std::size_t> const& widths) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        line += cells[i];
        if (i + 1 < cells.size()) line += std::string(widths[i] - width(cells[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
}

std::string csv_field(std::string const& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

void add_record(std::string& out, std::vector<std::string> const& cells) {
    std::string record;
    // "-" is for display; programs get an empty field.
    for (std::size_t i = 0; i < cells.size(); ++i)
        record += (i > 0 ? "," : "") + (cells[i] == "-" ? std::string{} : csv_field(cells[i]));
    // Programs skip an empty line.
    out += (record.empty() ? "\"\"" : record) + "\r\n";
}

std::string lower(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (c == ' ') c = '_';
    }
    return text;
}

}  // namespace

std::string printable(std::string_view text) {
    return escaped(text, Shown::word);
}

std::string as_table(Table const& table, Headers headers) {
    std::vector<std::size_t> widths;
    for (auto const& column : table.columns)
        widths.push_back(headers == Headers::shown ? width(column) : 0);
    for (auto const& row : table.rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    std::string out;
    if (headers == Headers::shown) add_line(out, table.columns, widths);
    for (auto const& row : table.rows) add_line(out, row, widths);
    return out;
}

std::string as_csv(Table const& table, Headers headers) {
    std::string out;
    std::vector<std::string> names;
    for (auto const& column : table.columns) names.push_back(lower(column));
    if (headers == Headers::shown) add_record(out, names);
    for (auto const& row : table.rows) add_record(out, row);
    return out;
}

std::string as_names(Table const& table) {
    std::string out;
    for (auto const& row : table.rows) out += row.front() + "\n";
    return out;
}

Result<Table> with_columns(Table const& table, std::vector<std::string> const& names) {
    if (names.empty()) return table;
    std::vector<std::string> known;
    for (auto const& column : table.columns) known.push_back(lower(column));
    Table out;
    out.rows.resize(table.rows.size());
    for (auto const& name : names) {
        auto const found = std::ranges::find(known, lower(name));
        if (found == known.end())
            return fail(Problem::invalid_request,
                        fmt::format("there is no column {}", quoted(name)),
                        fmt::format("choose among {}", fmt::join(known, ", ")));
        auto const at = static_cast<std::size_t>(found - known.begin());
        out.columns.push_back(table.columns[at]);
        for (std::size_t row = 0; row < table.rows.size(); ++row)
            out.rows[row].push_back(table.rows[row][at]);
    }
    return out;
}

Result<std::string> rendered(Table const& table, std::string const& body, Options const& options) {
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    if (options.format == Format::yaml) return as_yaml(body);
    if (options.format == Format::json) return body.ends_with('\n') ? body : body + "\n";
    VFMGR_TRY(auto const chosen, with_columns(table, options.columns));
    if (options.format == Format::name) return as_names(chosen);
    return options.format == Format::csv ? as_csv(chosen, headers) : as_table(chosen, headers);
}

}  // namespace vfmgr
