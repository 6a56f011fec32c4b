// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/records.hpp"

#include <iterator>

#include "api/os/file.hpp"
#include "guest-tools/net/metrics.hpp"

namespace vfmgr::guest {
namespace {

constexpr mode_t for_everybody = 0644;  // node_exporter is not root

bool holds(std::string const& file, std::string const& text) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return false;
    return read_file(file) == text;
}

}  // namespace

Result<void> record(Records const& records, VfReport const& report) {
    auto const kept = records.reports.save(report);
    auto const written = write_metrics(records);
    return kept ? written : kept;
}

Result<void> write_metrics(Records const& records) {
    if (records.metrics_file.empty()) return {};
    auto const text =
        metrics_text(VFMGR_VERSION, records.state.load(), records.reports.load().reports);
    if (holds(records.metrics_file, text)) return {};
    auto written = replace_file(records.metrics_file, text, for_everybody);
    if (!written)
        written.error().remedy =
            "name a file in a folder that exists and that vf-guest may write to (ReadWritePaths= "
            "in its unit)";
    return written;
}

}  // namespace vfmgr::guest
