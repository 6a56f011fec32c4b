// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/vf_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "api/os/file.hpp"
#include "api/types/json.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::guest {
namespace {

std::string place_line(VfReport const& report) {
    if (report.ifname.empty()) return {};
    return fmt::format("  netdev: {}, RDMA device: {}\n", report.ifname,
                       report.rdma_device.empty() ? "none" : report.rdma_device);
}

std::string time_line(Verification const& verification) {
    auto const start = to_rfc3339(verification.started_at);
    if (!verification.finished_at) return fmt::format("  started: {}\n", start);
    std::chrono::duration<double> const took = *verification.finished_at - verification.started_at;
    return fmt::format("  started: {}, took {:.1f} s\n", start, took.count());
}

}  // namespace

template <class F, Of<VfReport> V>
void fields(F& f, V& report) {
    f.members_of(report.verification);
    f.defaulted("ifname", report.ifname);
    f.defaulted("rdma_device", report.rdma_device);
    f.defaulted("at_once_with", report.at_once_with);
}

std::string describe(VfReport const& report, Figures shown) {
    auto text = verify::describe(report.verification, shown) + place_line(report);
    if (!report.at_once_with.empty())
        text += fmt::format("  at the same time as: {}\n", fmt::join(report.at_once_with, ", "));
    return text + time_line(report.verification);
}

int exit_code(VfReport const& report) {
    return report.verification.verdict == Verdict::pass ? 0 : 1;
}

namespace {

namespace fs = std::filesystem;
constexpr char const* report_suffix = ".json";
constexpr mode_t for_root_only = 0600;

Error unreadable_report(fs::path const& file) {
    return {Problem::guest_refused,
            fmt::format("the report {} can't be read", file.string()),
            "run vf-guest as root; if that does not help, remove the file",
            {errno_cause("read", errno)}};
}

Error damaged_report(fs::path const& file, std::string const& why) {
    return {Problem::guest_refused, fmt::format("the report {} {}", file.string(), why),
            "verify the VF again (vf-guest verify), or remove the file"};
}

Error folder_failed(fs::path const& folder, char const* call, std::error_code why) {
    return {Problem::kernel_refused,
            fmt::format("the report folder {} can't be used", folder.string()),
            "run vf-guest as root, or name another folder with --reports",
            {errno_cause(call, why.value())}};
}

Result<VfReport> load_file(fs::path const& file) {
    auto const text = read_file(file);
    if (!text) return fail(unreadable_report(file));
    auto report = from_json_text<VfReport>(*text);
    if (!report)
        return fail(damaged_report(file, fmt::format("is damaged: {}", report.error().detail)));
    if (report->verification.attachment != file.stem())
        return fail(damaged_report(
            file, fmt::format("is about another attachment, {}", report->verification.attachment)));
    return report;
}

// Sorted; empty without a folder.
Result<std::vector<fs::path>> files_in(fs::path const& folder) {
    std::error_code failed;
    auto files = paths_in(folder, failed);
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail(folder_failed(folder, "open", failed));
    std::erase_if(files, [](fs::path const& file) {
        return file.extension() != report_suffix || file.filename().string().starts_with('.');
    });
    return files;
}

}  // namespace

fs::path ReportFolder::file(std::string const& attachment) const {
    return path_ / (attachment + report_suffix);
}

KeptReports ReportFolder::load(std::string const& attachment) const {
    auto const files = files_in(path_);
    if (!files) return {{}, {files.error()}};
    KeptReports kept;
    for (auto const& each : *files) {
        if (!attachment.empty() && each.stem() != attachment) continue;
        if (auto report = load_file(each))
            kept.reports.push_back(std::move(*report));
        else
            kept.damaged.push_back(std::move(report.error()));
    }
    return kept;
}

Result<void> ReportFolder::save(VfReport const& report) const {
    auto const& attachment = report.verification.attachment;
    // An id, or an address.
    if (!fits_file_name(attachment, "-_.:") || attachment.front() == '.')
        return fail(Problem::invalid_request,
                    "the report is about an attachment with characters that a file name can't have",
                    "update vfmgrd on the host");
    std::error_code failed;
    fs::create_directories(path_, failed);
    if (failed) return fail(folder_failed(path_, "mkdir", failed));
    auto saved =
        replace_file(file(attachment), to_json_text(nlohmann::json(report)) + "\n", for_root_only);
    if (!saved) saved.error().remedy = "make the folder writable, or name another with --reports";
    return saved;
}

Result<void> ReportFolder::keep_only(std::vector<GuestAttachment> const& attached) const {
    VFMGR_TRY(auto const files, files_in(path_));
    for (auto const& each : files) {
        auto const attachment = each.stem().string();
        if (IpAddress::parse(attachment) ||
            std::ranges::find(attached, attachment, &GuestAttachment::attachment) != attached.end())
            continue;
        std::error_code failed;
        fs::remove(each, failed);
        if (failed) return fail(folder_failed(path_, "unlink", failed));
    }
    return {};
}

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

template struct vfmgr::Json<vfmgr::guest::VfReport>;
