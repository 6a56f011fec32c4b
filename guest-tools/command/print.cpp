// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/print.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/types/terminal.hpp"

namespace vfmgr::guest::command {

int print_error(Error const& error) {
    auto text = fmt::format("vf-guest: {}\n", error.detail);
    for (auto const& cause : error.causes)
        text += fmt::format("  {}: {} ({})\n", cause.call, cause.code, cause.text);
    if (!error.remedy.empty()) text += fmt::format("  remedy: {}\n", error.remedy);
    warn_text(text);
    return exit_code(error.problem);
}

void print_text(std::string_view text) {
    std::fputs(escaped(text, Shown::text).c_str(), stdout);
}

void warn_text(std::string_view text) {
    std::fputs(escaped(text, Shown::text).c_str(), stderr);
}

void print_line(std::string const& line) {
    print_text(fmt::format("vf-guest: {}\n", line));
    std::fflush(stdout);
}

void warn(std::string const& line) {
    warn_text(fmt::format("vf-guest: {}\n", line));
}

void print_document(std::string_view json) {
    auto const shown = escaped(json, Shown::json);
    std::fputs((shown + (shown.ends_with('\n') ? "" : "\n")).c_str(), stdout);
}

void print_json(nlohmann::json const& document) {
    print_document(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int ended_with(int status) {
    auto const written = flush_output();
    if (written) return status;
    auto const failed = print_error(written.error());
    return status == 0 ? failed : status;
}

}  // namespace vfmgr::guest::command
