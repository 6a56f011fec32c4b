// SPDX-License-Identifier: Apache-2.0
// vfctl's output: rows of text as a table, CSV or names. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

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
// Renders in the requested format; `body` is the API's answer, for JSON.
[[nodiscard]] std::string rendered(Table const& table, std::string const& body,
                                   Options const& options);

// Formats the value at a JSON pointer: "-" for null and absent, yes/no, lists with commas.
[[nodiscard]] std::string cell(nlohmann::json const& document, std::string const& pointer);
[[nodiscard]] std::string cell(nlohmann::json const& value);
// Keeps text on one line, and keeps a VM's name from controlling the terminal.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace vfmgr
