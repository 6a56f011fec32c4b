// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "vfmgr/checks/doctor.hpp"

namespace vfmgr::checks {
namespace {

using testing::HasSubstr;
using testing::Not;

Finding down(std::string const& port, std::string const& netdev) {
    auto finding = failed(port, "is down, because its netdev " + netdev + " is down",
                          by_command("ip link set dev " + netdev + " up", "then look again"),
                          {{"/sys/" + port, "1: DOWN"}});
    finding.rule = "port.state";
    return finding;
}

TEST(ReportText, TellsTheSameFaultOnceForAllDevices) {
    CheckReport report;
    report.findings = {down("mlx5_0/1", "ens1"), down("mlx5_1/1", "ens2"),
                       down("mlx5_2/1", "ens3")};
    EXPECT_EQ(describe(report, {}),
              "failed   port.state mlx5_0/1: is down, because its netdev ens1 is down\n"
              "      so do: mlx5_1/1, mlx5_2/1\n"
              "      $ ip link set dev ens1 up\n"
              "      $ ip link set dev ens2 up\n"
              "      $ ip link set dev ens3 up\n"
              "      then look again\n"
              "      /sys/mlx5_0/1: 1: DOWN\n"
              "3 failed\n");
}

TEST(ReportText, KeepsOtherFaultsApart) {
    auto other = down("mlx5_1/1", "ens2");
    other.detail = "is down, and detects no peer";
    CheckReport report;
    report.findings = {down("mlx5_0/1", "ens1"), other};
    EXPECT_THAT(describe(report, {}), Not(HasSubstr("so do")));
}

TEST(ReportText, RebootsOnceAndLast) {
    auto one = down("mlx5_0/1", "ens1"), other = down("mlx5_1/1", "ens2");
    one.remedy->commands = {"mstconfig -d 0000:01:00.0 set SRIOV_EN=1", "reboot"};
    other.remedy->commands = {"mstconfig -d 0000:02:00.0 set SRIOV_EN=1", "reboot"};
    CheckReport report;
    report.findings = {one, other};
    EXPECT_THAT(describe(report, {}), HasSubstr("      $ mstconfig -d 0000:01:00.0 set SRIOV_EN=1\n"
                                                "      $ mstconfig -d 0000:02:00.0 set SRIOV_EN=1\n"
                                                "      $ reboot\n"));
}

TEST(ReportText, FoldsWhatIsUnknownIntoALine) {
    CheckReport report;
    for (auto const* const what : {"/sys/a1", "/sys/a2", "/dev/kmsg"}) {
        report.findings.push_back(not_known("", std::string(what) + " was not collected"));
        report.findings.back().rule = what;
    }
    EXPECT_EQ(describe(report, {}),
              "unknown  3 checks, most because /sys/a1 was not collected; --all lists them\n"
              "3 unknown\n");
    EXPECT_THAT(describe(report, {.all = true}), HasSubstr("unknown  /dev/kmsg: /dev/kmsg was"));
}

TEST(ReportText, SaysWhatExplainsAFinding) {
    CheckReport report;
    report.findings = {down("mlx5_0/1", "ens1")};
    report.findings[0].caused_by = "log.pcie 0000:18:00.0";
    EXPECT_THAT(describe(report, {}), HasSubstr("      because of: log.pcie 0000:18:00.0\n"));
}

}  // namespace
}  // namespace vfmgr::checks
