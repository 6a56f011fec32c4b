// SPDX-License-Identifier: Apache-2.0
// The findings of the last verification of each VF of this VM, one file for each in
// /var/lib/vf-guest/reports, which survives a reboot. Files are replaced as a whole, so any thread
// and process may save and load beside others.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "guest-tools/net/vf_report.hpp"

namespace vfmgr::guest {

// A file that exists and can't be used. Its error names it, with a remedy.
struct DamagedReport {
    std::string attachment;  // from the file's name
    Error error;
};

struct KeptReports {
    std::vector<VfReport> reports;  // by attachment
    std::vector<DamagedReport> damaged;
};

class ReportFolder {
  public:
    explicit ReportFolder(std::filesystem::path path) : path_(std::move(path)) {}

    // A missing folder holds no reports. Loads all of them, or one attachment's.
    [[nodiscard]] KeptReports load() const;
    [[nodiscard]] KeptReports load(std::string const& attachment) const;
    // Replaces the report of the same attachment. invalid_request: its id can't be a file's name.
    [[nodiscard]] Result<void> save(VfReport const& report) const;
    // Removes the reports of attachments that the host no longer attaches, even from before a
    // reboot. Keeps those of `verify --responder`, by this machine's own address: they are not the
    // host's.
    [[nodiscard]] Result<void> keep_only(std::vector<GuestAttachment> const& attached) const;

  private:
    [[nodiscard]] std::filesystem::path file(std::string const& attachment) const;
    std::filesystem::path path_;
};

}  // namespace vfmgr::guest
