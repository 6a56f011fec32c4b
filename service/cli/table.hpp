// SPDX-License-Identifier: Apache-2.0
// What vfctl prints: rows of text as a table, CSV or names. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "service/cli/session.hpp"

namespace vfmgr {

struct Table {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;  // the first cell names the thing
};

enum class Headers { shown, hidden };

[[nodiscard]] std::string as_table(Table const& table, Headers headers);
[[nodiscard]] std::string as_csv(Table const& table, Headers headers);  // RFC 4180
[[nodiscard]] std::string as_names(Table const& table);
// In the format that was asked for; `body` is what the API answered, for JSON.
[[nodiscard]] std::string rendered(Table const& table, std::string const& body,
                                   Options const& options);

// The value at a JSON pointer for people: "-" for null and absent, yes/no, lists with commas.
[[nodiscard]] std::string cell(nlohmann::json const& document, std::string const& pointer);
[[nodiscard]] std::string cell(nlohmann::json const& value);
// On one line, and a VM's name does not steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace vfmgr
