// SPDX-License-Identifier: Apache-2.0
// What was found at the last verification of each VF of this VM, one file for each in
// /var/lib/vf-guest/reports: known after a reboot, too. Files are replaced as a whole, so any
// thread and process may save and load beside others.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "guest-tools/net/vf_report.hpp"

namespace vfmgr::guest {

// A file that is there and can't be used. Its error names it, with a remedy.
struct DamagedReport {
    std::string attachment;  // by the file's name
    Error error;
};

struct KeptReports {
    std::vector<VfReport> reports;  // by attachment
    std::vector<DamagedReport> damaged;
};

class ReportFolder {
  public:
    explicit ReportFolder(std::filesystem::path path) : path_(std::move(path)) {}

    // A folder that is not there holds none. All of them, or one attachment's.
    [[nodiscard]] KeptReports load() const;
    [[nodiscard]] KeptReports load(std::string const& attachment) const;
    // Replaces that of the same attachment. invalid_request: its id is no file's name.
    [[nodiscard]] Result<void> save(VfReport const& report) const;
    // Removes those of attachments that the host no longer lends, also before a reboot. Those of
    // `verify --responder`, by this machine's own address, are no host's to take.
    [[nodiscard]] Result<void> keep_only(std::vector<GuestAttachment> const& lent) const;

  private:
    [[nodiscard]] std::filesystem::path file(std::string const& attachment) const;
    std::filesystem::path path_;
};

}  // namespace vfmgr::guest
