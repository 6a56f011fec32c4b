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
                MatchesRegex("192.168.100.10 enp7s0 26 192.168.100.3 45671 64 10 [0-9]+ - -"));
}

TEST(CmPinger, OnInfiniBandTheChildIsToldPortAndPartition) {
    verify::CmOptions options;
    options.own = {IpAddress::parse("192.168.100.10").value(), "ib0"};
    options.own.port_guid = Guid{0x0202'c9ff'fe11'0002};
    options.own.pkey = 0x8001;
    auto const script = R"(printf '{"name": "cm_ping", "verdict": "pass", "by": "guest",
        "figures": {}, "detail": "%s"}' "$*" >&0)";
    auto const made =
        cm_pinger({"/bin/sh", "-c", script})(options, Steady::now() + std::chrono::seconds(60));
    EXPECT_THAT(made.result.detail, MatchesRegex(".* 02:02:c9:ff:fe:11:00:02 32769"));
}

// librdmacm may take another device of the same node GUID, or another port's IPoIB.
TEST(CmPinger, OnlyTheVfsOwnDeviceAndGidWillDo) {
    verify::Endpoint own;
    own.device = "mlx5_3";
    own.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 2, 0xc9, 0xff, 0xfe, 0x11, 0, 2};
    CmChoice choice{"mlx5_3"};
    std::ranges::copy(own.gid, choice.gid.raw);
    EXPECT_TRUE(check_choice(own, choice));
    choice.gid.raw[15] = 3;
    EXPECT_EQ(check_choice(own, choice).error().detail,
              "rdma_resolve_addr took GID fe80:0000:0000:0000:0202:c9ff:fe11:0003, not "
              "fe80:0000:0000:0000:0202:c9ff:fe11:0002, which is the VF's");
    choice.device = "mlx5_4";
    EXPECT_EQ(check_choice(own, choice).error().detail,
              "rdma_resolve_addr took device mlx5_4, not mlx5_3, which has the VF's address");
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
    std::vector<std::string> const good{
        "192.168.100.10", "enp7s0", "26",   "192.168.100.3", "45671", "64", "10",
        "1000",           "-",      "32769"};
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
