// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/tell.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace vfmgr::guest::command {

int told(Error const& error) {
    auto text = fmt::format("vf-guest: {}\n", error.detail);
    for (auto const& cause : error.causes)
        text += fmt::format("  {}: {} ({})\n", cause.call, cause.code, cause.text);
    if (!error.remedy.empty()) text += fmt::format("  remedy: {}\n", error.remedy);
    fmt::print(stderr, "{}", text);
    return exit_code(error.problem);
}

void tell(std::string const& line) {
    fmt::print("vf-guest: {}\n", line);
    std::fflush(stdout);
}

void warn(std::string const& line) {
    fmt::print(stderr, "vf-guest: {}\n", line);
}

void print_json(nlohmann::json const& document) {
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace vfmgr::guest::command
