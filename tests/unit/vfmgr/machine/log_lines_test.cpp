// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/log_lines.hpp"

#include <gtest/gtest.h>

#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"

namespace vfmgr::checks {
namespace {

struct Said {
    char const* text;
    double seconds;
    char const* line;
};

void PrintTo(Said const& said, std::ostream* out) {
    *out << said.text;
}

class LogForms : public testing::TestWithParam<Said> {};

TEST_P(LogForms, GiveTimeAndText) {
    auto const log = parse_kernel_log(GetParam().text);
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_DOUBLE_EQ(log.lines[0].seconds, GetParam().seconds);
    EXPECT_EQ(log.lines[0].text, GetParam().line);
}

constexpr auto up = "mlx5_core 0000:01:00.0: up";

INSTANTIATE_TEST_SUITE_P(
    DevKmsg, LogForms,
    testing::Values(Said{"6,339,5140900,-;mlx5_core 0000:01:00.0: up\n", 5.1409, up},
                    Said{"6,339,5140900,-,caller=T7;mlx5_core 0000:01:00.0: up", 5.1409, up},
                    Said{"6,339,5140900,-;mlx5_core 0000:01:00.0: up\n SUBSYSTEM=pci\n"
                         " DEVICE=+pci:0000:01:00.0\n",
                         5.1409, up},
                    Said{"6,339,5140900,-;[ 7.000000] host kernel: up", 5.1409,
                         "[ 7.000000] host kernel: up"},
                    Said{"6,1;up", 0, "6,1;up"}));

INSTANTIATE_TEST_SUITE_P(
    Dmesg, LogForms,
    testing::Values(
        Said{"[   11.512808] mlx5_core 0000:01:00.0: up", 11.512808, up},
        Said{"[   11.512808][  T417] mlx5_core 0000:01:00.0: up", 11.512808, up},
        Said{"[   11.512808][   C12] mlx5_core 0000:01:00.0: up\r\n", 11.512808, up},
        Said{"<6>[   11.512808] mlx5_core 0000:01:00.0: up", 11.512808, up},
        Said{"kern  :info  : [   11.512808] mlx5_core 0000:01:00.0: up", 11.512808, up},
        Said{"kern  :notice: [   11.512808] mlx5_core 0000:01:00.0: up", 11.512808, up},
        Said{"[Sun Nov  1 14:54:40 2026] mlx5_core 0000:01:00.0: up", 0, up},
        Said{"kern  :err   : [Sun Nov 22 14:54:40 2026] mlx5_core 0000:01:00.0: up", 0, up},
        Said{"2026-11-22T14:54:40,502716+00:00 mlx5_core 0000:01:00.0: up", 0, up},
        Said{"kern  :warn  : 2026-11-22T14:54:40,502716-08:00 mlx5_core 0000:01:00.0: up", 0, up},
        Said{"[Nov22 14:54] mlx5_core 0000:01:00.0: up", 0, up},
        Said{"[  +0.000007] mlx5_core 0000:01:00.0: up", 0, up},
        Said{"mlx5_core 0000:01:00.0: up", 0, up}, Said{"[   11.512808]", 11.512808, ""}));

INSTANTIATE_TEST_SUITE_P(
    Journal, LogForms,
    testing::Values(
        Said{"[   11.512808] host1 kernel: mlx5_core 0000:01:00.0: up", 11.512808, up},
        Said{"2026-11-22T14:54:40+0000 host1 kernel: mlx5_core 0000:01:00.0: up", 0, up},
        Said{"2026-11-22T14:54:40.502716+01:00 host1 kernel: mlx5_core 0000:01:00.0: "
             "up",
             0, up},
        Said{"Nov 22 14:54:40 host1 kernel: mlx5_core 0000:01:00.0: up", 0, up},
        Said{"Nov 22 14:54:40.502716 host1 kernel: mlx5_core 0000:01:00.0: up", 0, up}));

INSTANTIATE_TEST_SUITE_P(
    Syslog, LogForms,
    testing::Values(
        Said{"Nov  2 14:54:40 h.example kernel: [    1.000000] mlx5_core 0000:01:00.0: up", 1, up},
        Said{"2026-11-22T14:54:40.502716+01:00 h kernel: [    1.500000] mlx5_core 0000:01:00.0: up",
             1.5, up},
        Said{"h kernel: mlx5_core 0000:01:00.0: up", 0, up}));

// Text that only resembles a log prefix is part of the kernel's message.
INSTANTIATE_TEST_SUITE_P(
    NearMisses, LogForms,
    testing::Values(Said{"[   11.512808] a b kernel: up", 11.512808, "a b kernel: up"},
                    Said{"[x] up", 0, "[x] up"}, Said{"[11.5] up", 0, "[11.5] up"},
                    Said{"[   11.512808]up", 0, "[   11.512808]up"},
                    Said{"[   11.512808][ X1] up", 0, "[   11.512808][ X1] up"},
                    Said{"[Sun Now  1 14:54:40 2026] up", 0, "[Sun Now  1 14:54:40 2026] up"},
                    Said{"kern  :wrong : up", 0, "kern  :wrong : up"},
                    Said{"mlx5:info: up", 0, "mlx5:info: up"}, Said{"<x>up", 0, "<x>up"},
                    Said{"2026-11-22T14:54:40 up", 0, "2026-11-22T14:54:40 up"},
                    Said{"2026-11-22T14:54:40,+00:00up", 0, "2026-11-22T14:54:40,+00:00up"}));

TEST(KernelLog, LeavesOutWhatOtherProgramsSaid) {
    auto const log = parse_kernel_log(
        "Nov 22 14:54:40 host1 sshd[7]: DMAR: IOMMU enabled\n"
        "Nov 22 14:54:41 host1 kernel: DMAR: Host address width 46\n");
    ASSERT_EQ(log.lines.size(), 1U);
    EXPECT_EQ(log.lines[0].text, "DMAR: Host address width 46");
}

TEST(KernelLog, KnowsWhetherItsBeginningIsThere) {
    for (auto const* const whole :
         {"5,0,0,-;Linux version 6.1\n6,1,2,-;a\n", "[    0.000000] Linux version 6.1\n",
          "kern  :notice: [    0.000000] Linux version 6.1\n",
          "Nov 22 14:54:40 h kernel: [    0.000000] Linux version 6.1\n",
          "-- Journal begins at Sun 2026-11-22 14:00:00 UTC, ends at Sun 2026-11-22 15:00:00 UTC. "
          "--\nNov 22 14:54:40 h kernel: Linux version 6.1\n"})
        EXPECT_TRUE(parse_kernel_log(whole).from_boot) << whole;
    EXPECT_FALSE(parse_kernel_log("6,412,2,-;a\n6,413,2,-;b\n").from_boot);
}

// The same message, in each form in which the log was stored.
TEST(KernelLog, GivesRulesTheSameInEachForm) {
    constexpr auto complaint =
        "mlx5_core 0000:41:00.0: mlx5_port_module_event:1131:(pid 0): Port module event[error]: "
        "module 1, Cable error, High Temperature";
    for (auto const* const before :
         {"4,77,1,-;", "[    1.000000] ", "kern  :warn  : [    1.000000] ", "<4>[    1.000000] ",
          "[Sun Nov 22 14:54:40 2026] ", "2026-11-22T14:54:40,502716+00:00 ",
          "2026-11-22T14:54:40+0000 h kernel: ", "Nov 22 14:54:40 h kernel: ",
          "Nov 22 14:54:40 h kernel: [    1.000000] "}) {
        Facts facts;
        facts.patterns = {"*"};
        facts.files["/dev/kmsg"] = {std::string(before) + complaint, 0};
        std::string said;
        for (auto const& finding : diagnose(facts, all_rules()).findings)
            if (finding.rule == "log.mlx5") said += finding.subject + " " + finding.detail;
        EXPECT_EQ(said, "0000:41:00.0 the module in port 2 is too hot, which takes its link down")
            << before;
    }
}

}  // namespace
}  // namespace vfmgr::checks
