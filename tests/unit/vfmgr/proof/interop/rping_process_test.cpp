// SPDX-License-Identifier: Apache-2.0
// A shell stands for the child: it writes to its standard input what the real one writes there.
#include "vfmgr/proof/interop/rping.hpp"

#include <gtest/gtest.h>

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;

Terms terms() {
    Terms made;
    made.permit.peer_address = IpAddress::parse("192.168.100.10").value();
    made.permit.host_address = IpAddress::parse("192.168.100.3").value();
    made.permit.host_netdev = "interface";
    made.until = Steady::now() + std::chrono::seconds(60);
    return made;
}

auto start(std::string const& script) {
    return RpingProcess::start({"/bin/sh", "-c", script}, terms());
}

TEST(RpingProcess, TellsItsCounts) {
    auto const process = start("printf 'ready 7174' >&0; printf '3 1 25' >&0; read unused");
    ASSERT_TRUE(process) << process.error().detail;
    auto const deadline = Steady::now() + std::chrono::seconds(10);
    while ((*process)->served().served == 0) ASSERT_LT(Steady::now(), deadline);
    EXPECT_EQ((*process)->served().served, 3U);
    EXPECT_EQ((*process)->served().refused, 1U);
    EXPECT_EQ((*process)->served().pings, 25U);
}

TEST(RpingProcess, TellsWhereItListens) {
    auto const process = start("printf 'ready 45671' >&0; read unused");
    ASSERT_TRUE(process) << process.error().detail;
    EXPECT_EQ((*process)->port(), 45671);
    for (auto const* no_port : {"printf 'ready ' >&0", "printf 'ready 0' >&0",
                                "printf 'ready 65536' >&0", "printf ready >&0"})
        EXPECT_FALSE(start(no_port)) << no_port;
}

// The count runs to the end, not only to the last report.
TEST(RpingProcess, ItsLastWordIsWaitedFor) {
    auto const process = start("printf 'ready 7174' >&0; read unused; printf '1 0 10' >&0");
    ASSERT_TRUE(process) << process.error().detail;
    EXPECT_EQ((*process)->stop().pings, 10U);
}

TEST(RpingProcess, TellsWhyItDoesNotServe) {
    auto const process = start("printf 'RDMA CM is not available' >&0; exit 1");
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().problem, Problem::unsupported);
    EXPECT_EQ(process.error().detail, "RDMA CM is not available");
}

TEST(RpingProcess, IsKilledWhenItDoesNotEnd) {
    auto process = start("printf 'ready 7174' >&0; trap '' TERM; exec sleep 60 <&-");
    ASSERT_TRUE(process) << process.error().detail;
    auto const began = Steady::now();
    process->reset();
    EXPECT_LT(Steady::now() - began, std::chrono::seconds(10));
}

TEST(RpingProcess, TheChildRefusesOtherWords) {
    std::vector<std::string> const good{
        "192.168.100.10", "192.168.100.3", "interface", "7174", "60", "-", "-", "-"};
    for (std::size_t i = 0; i < good.size(); ++i) {
        if (i == 2) continue;  // any name
        auto bad = good;
        bad[i] = "x";
        EXPECT_EQ(serve_rping(bad), 2) << i;
    }
    EXPECT_EQ(serve_rping({good.begin(), good.end() - 1}), 2);
}

}  // namespace
}  // namespace vfmgr::interop
