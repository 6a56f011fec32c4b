// SPDX-License-Identifier: Apache-2.0
// A shell stands for the child: it writes to its standard input what the real one writes there.
#include "vfmgr/proof/interop/cm_pinger.hpp"

#include <gmock/gmock.h>

namespace vfmgr::interop {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using Steady = std::chrono::steady_clock;

TestResult ping(std::string const& script,
                Deadline deadline = Steady::now() + std::chrono::seconds(60)) {
    verify::CmOptions const options{{IpAddress::parse("192.168.100.10").value(), "enp7s0", 26},
                                    IpAddress::parse("192.168.100.3").value(),
                                    45671,
                                    64,
                                    10};
    return cm_pinger({"/bin/sh", "-c", script})(options, deadline).result;
}

TEST(CmPinger, TheChildIsToldWhatToDoAndTellsHowItWent) {
    auto const result = ping(R"(printf '{"name": "cm_ping", "verdict": "pass", "by": "guest",
        "figures": {"sent": 10}, "detail": "%s"}' "$0 $*" >&0)");
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_EQ(result.figures.at("sent"), 10);
    EXPECT_THAT(result.detail,
                MatchesRegex("192.168.100.10 enp7s0 26 192.168.100.3 45671 64 10 [0-9]+"));
}

TEST(CmPinger, AChildThatSaysNothingFails) {
    auto const ended = ping("exit 1");
    EXPECT_EQ(ended.verdict, Verdict::fail);
    EXPECT_THAT(ended.detail, HasSubstr("ended without a result"));
    EXPECT_NE(ended.remedy, "");
    auto const late = ping("read unused", Steady::now() - std::chrono::seconds(1));
    EXPECT_EQ(late.verdict, Verdict::fail);
    EXPECT_THAT(late.detail, HasSubstr("did not end in time"));
    EXPECT_EQ(ping("printf '{}' >&0").verdict, Verdict::fail);
}

TEST(CmPinger, AProgramThatIsNotThereFails) {
    auto const result = cm_pinger({"/nowhere/vf-guest"})({}, Steady::now()).result;
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("can't be started"));
}

TEST(CmPinger, TheChildRefusesOtherWords) {
    std::vector<std::string> const good{"192.168.100.10", "enp7s0", "26", "192.168.100.3",
                                        "45671",          "64",     "10", "1000"};
    for (std::size_t i = 0; i < good.size(); ++i) {
        if (i == 1) continue;  // any name
        auto bad = good;
        bad[i] = "x";
        EXPECT_EQ(ping_by_cm(bad), 2) << i;
    }
    auto short_one = good;
    short_one.pop_back();
    EXPECT_EQ(ping_by_cm(short_one), 2);
    auto other_class = good;
    other_class[2] = "64";
    EXPECT_EQ(ping_by_cm(other_class), 2);
    for (auto const* bytes : {"0", "1048577"}) {
        auto bad = good;
        bad[5] = bytes;
        EXPECT_EQ(ping_by_cm(bad), 2) << bytes;
    }
}

}  // namespace
}  // namespace vfmgr::interop
