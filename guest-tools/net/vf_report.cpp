// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/vf_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/types/json.hpp"
#include "guest-tools/verify/report.hpp"

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

}  // namespace vfmgr::guest

template struct vfmgr::Json<vfmgr::guest::VfReport>;
