// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/bandwidth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;

void write(test::TemporaryFolder const& folder, std::string const& file, char const* text) {
    auto const path = std::filesystem::path(folder.file(file));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
}

// A 100 Gbit/s NIC in a slot of 8 GT/s x16, behind a switch.
PathFacts connectx() {
    PathFacts facts;
    facts.path = TestPath::wire;
    facts.port_mbps = 100'000;
    facts.pcie = PcieLink{8, 16};
    facts.path_mtu = 4096;
    return facts;
}

TestResult result_of(char const* name, double mbps, double message_bytes = 65536) {
    TestResult test;
    test.name = name;
    test.verdict = Verdict::pass;
    test.figures = {{"bandwidth_mbps", mbps}, {"message_bytes", message_bytes}};
    return test;
}

TEST(ExpectedRate, IsReadFromTheNetdevBelowAVlanDevice) {
    test::TemporaryFolder const sysfs;
    write(sysfs, "class/net/interface/lower_pf0/ifindex", "2");
    write(sysfs, "class/net/pf0/speed", "100000");
    write(sysfs, "class/net/pf0/device/current_link_speed", "8.0 GT/s PCIe");
    write(sysfs, "class/net/pf0/device/current_link_width", "16");
    auto const facts = read_path("interface", sysfs.file(""));
    EXPECT_EQ(facts.port_mbps, 100'000U);
    EXPECT_EQ(facts.pcie, (PcieLink{8, 16}));
}

TEST(ExpectedRate, WhatIsNotSaidIsNotKnown) {
    test::TemporaryFolder const sysfs;
    write(sysfs, "class/net/pf0/speed", "-1");
    write(sysfs, "class/net/pf0/device/current_link_speed", "Unknown");
    write(sysfs, "class/net/pf0/device/current_link_width", "0");
    EXPECT_EQ(read_path("pf0", sysfs.file("")), PathFacts{});
    EXPECT_EQ(read_path("none", sysfs.file("")), PathFacts{});
    EXPECT_FALSE(expected_rate({}, Flow::out));
}

TEST(ExpectedRate, IsThePortsLessWhatIsAroundEachPacket) {
    auto const limit = expected_rate(connectx(), Flow::out);
    ASSERT_TRUE(limit);
    // 98.0 % at path MTU 4096 (vfmgr/rdma/RDMA.md#packet-overhead).
    EXPECT_NEAR(limit->mbps, 98'000, 40);
    EXPECT_EQ(limit->what, "the port (100000 Mbit/s)");
    auto small = connectx();
    small.path_mtu = 1024;
    EXPECT_NEAR(expected_rate(small, Flow::out)->mbps, 92'600, 40);
}

TEST(ExpectedRate, TheNarrowestPartSetsIt) {
    auto facts = connectx();
    facts.pcie = PcieLink{8, 8};
    EXPECT_EQ(expected_rate(facts, Flow::in)->what, "the NIC's PCIe link (8 GT/s x8)");
    EXPECT_NEAR(expected_rate(facts, Flow::in)->mbps, 57'600, 100);
    facts.vf_mbps = 500;
    EXPECT_EQ(expected_rate(facts, Flow::out)->what, "the VF's rate limit (500 Mbit/s)");
    EXPECT_EQ(expected_rate(facts, Flow::in)->what, "the NIC's PCIe link (8 GT/s x8)")
        << "max_tx_rate limits what the VF sends";
    auto const both = expected_rate(facts, Flow::both);
    EXPECT_NEAR(both->mbps, 57'600 + 490, 100);
    EXPECT_EQ(both->what, "the VF's rate limit (500 Mbit/s)");
}

TEST(ExpectedRate, WhatStaysInsideTheNicDoesNotReachThePort) {
    auto facts = connectx();
    facts.path = TestPath::internal_switch;
    EXPECT_EQ(expected_rate(facts, Flow::out)->what, "the NIC's PCIe link (8 GT/s x16)");
}

TEST(ExpectedRate, IsSaidBesideTheFigure) {
    auto test = result_of("write_bandwidth", 88'200);
    EXPECT_FALSE(compare_rate(test, Flow::out, connectx()));
    EXPECT_NEAR(test.figures.at("achieved_percent"), 90, 0.1);
    EXPECT_NEAR(test.figures.at("achievable_mbps"), 98'000, 40);
    EXPECT_EQ(test.detail, "90 % of what the port (100000 Mbit/s) carries");
}

TEST(ExpectedRate, HardwareThatStaysFarBelowIsAWarning) {
    auto test = result_of("read_bandwidth", 40'000);
    auto const warning = compare_rate(test, Flow::in, connectx());
    ASSERT_TRUE(warning);
    EXPECT_EQ(warning->test, "read_bandwidth");
    EXPECT_THAT(warning->detail, HasSubstr("40000 of 98037 Mbit/s, 40.8 % of what the port"));
    EXPECT_THAT(warning->remedy, HasSubstr("LnkSta"));
    auto slow = result_of("read_bandwidth", 40'000);
    auto software = connectx();
    software.software = true;
    EXPECT_FALSE(compare_rate(slow, Flow::in, software)) << "SoftRoCE is as fast as its CPUs";
    EXPECT_TRUE(slow.figures.contains("achieved_percent"));
}

TEST(ExpectedRate, ALimitThatDoesNotHoldIsAWarning) {
    auto facts = connectx();
    facts.software = true;
    facts.vf_mbps = 500;
    auto test = result_of("send_bandwidth", 600);
    auto const warning = compare_rate(test, Flow::out, facts);
    ASSERT_TRUE(warning);
    EXPECT_THAT(warning->detail, HasSubstr("faster than its rate limit of 500 Mbit/s"));
    auto kept = result_of("send_bandwidth", 520);
    EXPECT_FALSE(compare_rate(kept, Flow::out, facts)) << "a bucket lets a burst through";
    auto read = result_of("read_bandwidth", 600);
    EXPECT_FALSE(compare_rate(read, Flow::in, facts)) << "which others send";
}

TEST(ExpectedRate, IsNotSaidOfWhatItDoesNotLimit) {
    auto small = result_of("write_bandwidth", 1, 64);
    EXPECT_FALSE(compare_rate(small, Flow::out, connectx()));
    EXPECT_EQ(small.figures.size(), 2U);
    auto failed = result_of("write_bandwidth", 1);
    failed.verdict = Verdict::fail;
    EXPECT_FALSE(compare_rate(failed, Flow::out, connectx()));
}

}  // namespace
}  // namespace vfmgr::verify
