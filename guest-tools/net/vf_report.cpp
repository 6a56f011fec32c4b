// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/vf_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/types/json.hpp"
#include "guest-tools/verify/report.hpp"

namespace vfmgr::guest {
namespace {

// Visits the VM's own members.
template <class F, Of<VfReport> V>
void fields(F& f, V& report) {
    f.defaulted("ifname", report.ifname);
    f.defaulted("rdma_device", report.rdma_device);
    f.defaulted("at_once_with", report.at_once_with);
}

std::string place_line(VfReport const& report) {
    if (report.ifname.empty()) return {};
    return fmt::format("  interface: {}, RDMA device: {}\n", report.ifname,
                       report.rdma_device.empty() ? "none" : report.rdma_device);
}

std::string time_line(Verification const& verification) {
    auto const start = to_rfc3339(verification.started_at);
    if (!verification.finished_at) return fmt::format("  begun: {}\n", start);
    std::chrono::duration<double> const took = *verification.finished_at - verification.started_at;
    return fmt::format("  begun: {}, took {:.1f} s\n", start, took.count());
}

}  // namespace

void to_json(nlohmann::json& out, VfReport const& report) {
    nlohmann::json own;
    JsonWriter writer(own);
    fields(writer, report);
    to_json(out, report.verification);
    out.update(own);
}

void read(JsonReader& reader, VfReport& report) {
    read(reader, report.verification);
    fields(reader, report);
}

std::string describe(VfReport const& report) {
    auto text = verify::describe(report.verification) + place_line(report);
    if (!report.at_once_with.empty())
        text += fmt::format("  at once with: {}\n", fmt::join(report.at_once_with, ", "));
    return text + time_line(report.verification);
}

int exit_code(VfReport const& report) {
    return report.verification.verdict == Verdict::pass ? 0 : 1;
}

}  // namespace vfmgr::guest
