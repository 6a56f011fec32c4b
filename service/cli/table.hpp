// SPDX-License-Identifier: Apache-2.0
// vfctl's output: rows of text as a table, CSV or names; documents. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/time.hpp"
#include "service/cli/session.hpp"

namespace vfmgr {

struct Table {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;  // the first cell names the object
};

enum class Headers { shown, hidden };

[[nodiscard]] std::string as_table(Table const& table, Headers headers);
[[nodiscard]] std::string as_csv(Table const& table, Headers headers);  // RFC 4180
[[nodiscard]] std::string as_names(Table const& table);
// Returns the table with only these columns, in this order, or all of it if none is named. Names
// are those of the heading or of CSV, in any case; one that the table lacks is an invalid_request.
[[nodiscard]] Result<Table> with_columns(Table const& table, std::vector<std::string> const& names);
// True for the API's own document, as JSON or YAML.
[[nodiscard]] inline bool is_document(Format format) {
    return format == Format::json || format == Format::yaml;
}
// Renders in the requested format; `body` is the API's answer, for documents.
[[nodiscard]] Result<std::string> rendered(Table const& table, std::string const& body,
                                           Options const& options);

// Keeps text on one line, and keeps a VM's name from controlling the terminal.
[[nodiscard]] std::string printable(std::string_view text);

// Formats a value: "-" for absent and empty ones, yes/no, lists with commas.
template <class T>
[[nodiscard]] std::string cell(std::optional<T> const& value);
template <class T>
[[nodiscard]] std::string cell(std::vector<T> const& values);
template <class T>
[[nodiscard]] std::string cell(T const& value) {
    if constexpr (std::is_convertible_v<T const&, std::string_view>)
        return std::string_view(value).empty() ? "-" : printable(value);
    else if constexpr (std::is_same_v<T, bool>)
        return value ? "yes" : "no";
    else if constexpr (std::is_integral_v<T>)
        return std::to_string(value);
    else if constexpr (std::is_enum_v<T>)
        return std::string(enum_name(value));
    else if constexpr (std::is_same_v<T, Time>)
        return to_rfc3339(value);
    else
        return to_string(value);
}
template <class T>
std::string cell(std::optional<T> const& value) {
    return value ? cell(*value) : "-";
}
template <class T>
std::string cell(std::vector<T> const& values) {
    std::string out;
    for (auto const& value : values) out += (out.empty() ? "" : ",") + cell(value);
    return out.empty() ? "-" : out;
}
// Formats a member of a value that may be absent.
template <class T, class Member>
[[nodiscard]] std::string cell(std::optional<T> const& value, Member T::* member) {
    return value ? cell((*value).*member) : "-";
}

}  // namespace vfmgr
