// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/report_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "api/os/file.hpp"
#include "api/types/json.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;
constexpr char const* report_suffix = ".json";
constexpr mode_t for_root_only = 0600;

// It becomes a file's name: an id, or an address.
Result<void> check_report_id(std::string const& attachment) {
    auto const is_plain = [](char letter) {
        return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
               (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '_' ||
               letter == '.' || letter == ':';
    };
    if (!attachment.empty() && attachment.size() <= 64 && attachment.front() != '.' &&
        std::ranges::all_of(attachment, is_plain))
        return {};
    return fail(Problem::invalid_request,
                "the report is about an attachment with characters that a file name can't have",
                "update vfmgrd on the host");
}

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

void load_into(KeptReports& kept, fs::path const& file) {
    auto report = load_file(file);
    if (report)
        kept.reports.push_back(std::move(*report));
    else
        kept.damaged.push_back({file.stem().string(), std::move(report.error())});
}

// Sorted; empty without a folder.
Result<std::vector<fs::path>> files_in(fs::path const& folder) {
    std::vector<fs::path> files;
    std::error_code failed;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
        if (it->path().extension() == report_suffix &&
            !it->path().filename().string().starts_with('.'))
            files.push_back(it->path());
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail(folder_failed(folder, "open", failed));
    std::ranges::sort(files);
    return files;
}

}  // namespace

fs::path ReportFolder::file(std::string const& attachment) const {
    return path_ / (attachment + report_suffix);
}

KeptReports ReportFolder::load() const {
    KeptReports kept;
    auto const files = files_in(path_);
    if (!files) kept.damaged.push_back({{}, files.error()});
    if (files)
        for (auto const& each : *files) load_into(kept, each);
    return kept;
}

KeptReports ReportFolder::load(std::string const& attachment) const {
    auto kept = load();
    std::erase_if(kept.reports,
                  [&](auto const& each) { return each.verification.attachment != attachment; });
    std::erase_if(kept.damaged, [&](auto const& each) {
        return !each.attachment.empty() && each.attachment != attachment;
    });
    return kept;
}

Result<void> ReportFolder::save(VfReport const& report) const {
    auto const& attachment = report.verification.attachment;
    VFMGR_CHECK(check_report_id(attachment));
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

}  // namespace vfmgr::guest
