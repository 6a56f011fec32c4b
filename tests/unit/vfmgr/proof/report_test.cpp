// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/session.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>

namespace vfmgr::verify {
namespace {

TEST(Report, TellsWhatWasSlowThoughItPassed) {
    Verification passed;
    passed.verdict = Verdict::pass;
    passed.warnings = {{"write_latency", "write_latency: slower than it was", "top"}};
    EXPECT_THAT(describe(passed),
                testing::HasSubstr("  warning: write_latency: slower than it was\n"
                                   "    remedy: top\n"));
}

TEST(Report, ALossIsAWarning) {
    Verification passed;
    passed.verdict = Verdict::pass;
    passed.losses = {
        {Judge::host, {}, "on the host, enp1s0 dropped 2 oversized frames", "ip link"}};
    EXPECT_THAT(describe(passed),
                testing::HasSubstr("  warning: on the host, enp1s0 dropped 2 oversized frames\n"
                                   "    remedy: ip link\n"));
}

TestResult result(char const* name, std::map<std::string, double> figures, char const* detail) {
    TestResult test;
    test.name = name;
    test.verdict = Verdict::pass;
    test.figures = std::move(figures);
    test.detail = detail;
    return test;
}

TEST(TestLines, EachHasTheFiguresThatMatter) {
    auto write = result("rdma_write", {{"bandwidth_mbps", 193.4321}, {"seconds", 0.17}}, "");
    write.bytes_checked = 4194304;
    auto read = result("rdma_read", {{"bandwidth_mbps", 133.1}}, "the digest is wrong");
    read.verdict = Verdict::fail;
    read.remedy = "verify again";
    EXPECT_EQ(
        test_lines(
            {write, read, result("path_mtu", {{"mtu_bytes", 9000}, {"round_trip_min_us", 80}}, ""),
             result("rc_ping", {{"round_trip_min_us", 61.34}}, ""),
             result("ud_ping", {{"p50_us", 281.34}, {"p99_us", 1400.2}, {"lost", 0}}, "round trip"),
             result("write_bandwidth", {{"bandwidth_mbps", 108.2}, {"achievable_mbps", 1828.57}},
                    "5.9 % of what the NIC's PCIe link (2.5 GT/s x1) carries")},
            Figures::important),
        "  rdma_write       pass  193 Mbit/s, 4194304 bytes checked\n"
        "  rdma_read        fail  the digest is wrong\n"
        "    remedy: verify again\n"
        "  path_mtu         pass  MTU 9000\n"
        "  rc_ping          pass  round trip 61.3 us\n"
        "  ud_ping          pass  p50 281 us, p99 1400 us, 0 lost, round trip\n"
        "  write_bandwidth  pass  108 of 1829 Mbit/s, 5.9 % of what the NIC's PCIe link "
        "(2.5 GT/s x1) carries\n");
}

TEST(TestLines, Fit100ColumnsWhereTheValuesAllow) {
    std::string const detail(89, 'x');
    EXPECT_EQ(test_lines({result("a", {{"p50_us", 1}}, detail.c_str())}, Figures::important),
              "  a  pass  p50 1 us\n    " + detail + "\n");
    EXPECT_EQ(test_lines({result("a", {}, detail.c_str())}, Figures::important),
              "  a  pass  " + detail + "\n");
    EXPECT_EQ(test_lines({result("a", {}, "")}, Figures::important), "  a  pass\n");
}

TEST(TestLines, HaveEveryFigureOnRequest) {
    auto test = result("write_bandwidth",
                       {{"achieved_percent", 5.917},
                        {"bandwidth_mbps", 94212},
                        {"depth", 64},
                        {"message_bytes", 65536},
                        {"messages", 2134},
                        {"queue_pairs", 1}},
                       "");
    EXPECT_EQ(test_lines({test}, Figures::all),
              "  write_bandwidth  pass  94212 Mbit/s\n"
              "    by guest\n"
              "    achieved_percent 5.917, bandwidth_mbps 94212, depth 64, message_bytes 65536, "
              "messages 2134,\n"
              "    queue_pairs 1\n");
    test.by = Judge::host;
    test.figures.clear();
    test.mismatches = 1;
    test.verdict = Verdict::fail;
    EXPECT_EQ(test_lines({test}, Figures::all),
              "  write_bandwidth  fail\n"
              "    by host, 0 bytes checked, 1 wrong\n");
}

}  // namespace
}  // namespace vfmgr::verify
