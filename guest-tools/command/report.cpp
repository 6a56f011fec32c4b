// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "guest-tools/command/print.hpp"
#include "guest-tools/net/records.hpp"

namespace vfmgr::guest::command {
namespace {

Error nothing_kept(Options const& options) {
    return {Problem::not_found,
            options.attachment.empty()
                ? "no VF of this VM has been verified yet"
                : fmt::format("attachment {} has not been verified yet", options.attachment),
            "verify now: vf-guest verify"};
}

}  // namespace

int run_report(Options const& options) {
    auto const records = records_of(options);
    auto const& folder = records.reports;
    auto const kept = options.attachment.empty() ? folder.load() : folder.load(options.attachment);
    auto const written = write_metrics(records);
    int worst = written ? 0 : print_error(written.error());
    for (auto const& each : kept.reports) {
        worst = std::max(worst, exit_code(each));
        if (options.output == Output::text) print_text(describe(each, options.figures));
    }
    if (options.output == Output::json) print_json(nlohmann::json(kept.reports));
    for (auto const& each : kept.damaged) worst = std::max(worst, print_error(each.error));
    if (kept.reports.empty() && kept.damaged.empty()) return print_error(nothing_kept(options));
    return worst;
}

}  // namespace vfmgr::guest::command
