// SPDX-License-Identifier: Apache-2.0
// The findings of one verification of a VF, with what only the VM knows about it. Values, and their
// text for people.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/test_lines.hpp"
#include "api/types/verification.hpp"
#include "guest-tools/net/configure.hpp"

namespace vfmgr::guest {

struct VfReport {
    Verification verification;
    std::string ifname;                     // empty: the VF had none
    std::string rdma_device;                // empty: none was opened
    std::vector<std::string> at_once_with;  // attachments tested at the same time
    bool operator==(VfReport const&) const = default;
};

// Several lines, each ending in a newline: verify::describe(), and where, when and for how long.
[[nodiscard]] std::string describe(VfReport const& report, Figures shown = Figures::important);

// vf-guest's exit status: 0 when it passed, otherwise 1.
[[nodiscard]] int exit_code(VfReport const& report);

// The findings of the last verification of each VF of this VM, one file for each in
// /var/lib/vf-guest/reports, which survives a reboot. Files are replaced as a whole, so any thread
// and process may save and load beside others.

struct KeptReports {
    std::vector<VfReport> reports;  // by attachment
    std::vector<Error> damaged;     // files that exist and can't be used, each named, with a remedy
};

class ReportFolder {
  public:
    explicit ReportFolder(std::filesystem::path path) : path_(std::move(path)) {}

    // A missing folder holds no reports. Loads one attachment's, or all of them.
    [[nodiscard]] KeptReports load(std::string const& attachment = {}) const;
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

// The records of vf-guest's work: reports for people, metrics for monitoring of the VM. Any thread
// and process; files are replaced as a whole.

struct Records {
    ReportFolder reports;
    StateFolder state;
    std::string metrics_file{};  // empty: none
};

// Runs after a verification, whatever requested it: saves its report and writes the metrics.
[[nodiscard]] Result<void> record(Records const& records, VfReport const& report);
// What is configured and what the last verifications found, in Prometheus's format: the text format
// 0.0.4, base units. The texts are UTF-8. Writes a duplicate series only once: a reader would
// refuse the whole file. Pure.
[[nodiscard]] std::string metrics_text(std::string_view version,
                                       std::vector<Configured> const& configured,
                                       std::vector<VfReport> const& reports);
// Writes the metrics of all that is configured and kept now. Leaves a file that would not change as
// it is: its time is that of the last change.
[[nodiscard]] Result<void> write_metrics(Records const& records);

}  // namespace vfmgr::guest

extern template struct vfmgr::Json<vfmgr::guest::VfReport>;
