// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "summary_of_packets.hpp"

namespace vfmgr::stream {
namespace {

using test::summary_of_packets;

Summary found() {
    auto summary = summary_of_packets(1000);
    summary.sent = Ending{100'000, 9'999'000, {6250, 0, 0}, 0};
    summary.received = 100'000;
    summary.timed = 99'984;
    summary.microseconds = 9'998'400;
    summary.lost = 0;
    summary.socket_lost = 0;
    summary.ring_packets = 4096;
    return summary;
}

TEST(StreamText, ASecondIsALine) {
    Interval second{3'000'123, 1'000'000, 12'500, 12'500'000, -2, 2, 1, 0, 0};
    EXPECT_EQ(describe(second),
              "   3.0 s  100.0 Mbit/s  12500 packets/s  12500 packets  12500000 bytes  lost -2  "
              "out of order 2  duplicated 1");
    second.foreign = 4;
    second.socket_lost = 5;
    EXPECT_TRUE(describe(second).ends_with("foreign 4  lost here: 5, socket buffer full"));
}

TEST(StreamText, ASummaryOfARunThatLostNothing) {
    EXPECT_EQ(describe(found()),
              "sent       100000 packets of 1000 bytes over udp in 9.999 s\n"
              "received   100000 packets  100000000 bytes  80.0 Mbit/s  10000 packets/s\n"
              "lost       0 packets (0 %)\n"
              "ring       4096 packets in main memory\n"
              "also       out of order 0  duplicated 0  foreign 0\n");
    auto in_gpu = found();
    in_gpu.ring = {Memory::gpu, PciAddress{0, 0x1b, 0, 0}, verify::Route::dma_buf};
    EXPECT_NE(describe(in_gpu).find("ring       4096 packets in GPU 0000:1b:00.0, by DMA-BUF\n"),
              std::string::npos);
    in_gpu.ring.route = verify::Route::staged;
    EXPECT_EQ(describe(in_gpu.ring), "in GPU 0000:1b:00.0, staged through main memory");
}

TEST(StreamText, WhatIsKnownOfALossIsTold) {
    auto summary = found();
    summary.received = 99'990;
    summary.lost = 10;
    summary.sent->filtered = 4;
    summary.sent->lateness = {6250, 3, 913};
    summary.socket_lost = 5;
    summary.too_late = 1;
    auto const text = describe(summary);
    for (auto const* const part :
         {"; 3 of 6250 chunks late, by 913 us at most\n", "lost       10 packets (0.01 %)\n",
          "  on the sender: 4 refused by its packet filter: nft list ruleset\n",
          "  on the receiver: 5 dropped by its socket, whose buffer was full",
          "  1 came more than 1048576 packets late"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(StreamText, WithoutTheSendersWordTheLossIsALeastOne) {
    auto summary = found();
    summary.sent.reset();
    summary.lost.reset();
    summary.missing = 7;
    summary.end = End::sender_gone;
    auto const text = describe(summary);
    EXPECT_TRUE(text.starts_with("sent       unknown\n")) << text;
    EXPECT_NE(text.find("lost       at least 7: the number of packets sent is unknown\n"),
              std::string::npos);
    EXPECT_TRUE(text.ends_with("end        the sender disconnected before it reported its end\n"));
}

TEST(StreamText, WhereNothingCameTheFirewallIsNamed) {
    auto summary = found();
    summary.received = summary.timed = 0;
    summary.lost = 100'000;
    EXPECT_NE(describe(summary).find("  no packet came: let UDP port 18525, or --port, through"),
              std::string::npos);
    summary.over = Over::ud;
    EXPECT_NE(describe(summary).find("let UDP port 4791 (RoCE v2) through"), std::string::npos);
    EXPECT_EQ(describe(found()).find("no packet came"), std::string::npos);
}

TEST(StreamText, ForPrograms) {
    auto const json = document(found());
    EXPECT_EQ(json["type"], "summary");
    EXPECT_EQ(json["bytes"], 100'000'000);
    EXPECT_EQ(json["rate_mbps"], 80.0);
    EXPECT_EQ(json["packets_per_second"], 10'000.0);
    EXPECT_EQ(json["lost"], 0);
    EXPECT_EQ(json["sent"]["packets"], 100'000);
    EXPECT_EQ(json["memory"], "host");
    EXPECT_TRUE(json["route"].is_null());
    auto in_gpu = found();
    in_gpu.ring = {Memory::gpu, PciAddress{0, 0x1b, 0, 0}, verify::Route::peermem};
    EXPECT_EQ(document(in_gpu)["memory"], "gpu");
    EXPECT_EQ(document(in_gpu)["gpu"], "0000:1b:00.0");
    EXPECT_EQ(document(in_gpu)["route"], "peermem");
    auto const nothing = summary_of_packets(32);
    for (auto const* const key : {"rate_mbps", "packets_per_second", "lost", "sent", "socket_lost"})
        EXPECT_TRUE(document(nothing)[key].is_null()) << key;
    auto const second = document(Interval{1'000'000, 1'000'000, 10, 640, 1, 0, 0, 0, {}});
    EXPECT_EQ(second["type"], "second");
    EXPECT_EQ(second["seconds"], 1.0);
    EXPECT_EQ(second["packets"], 10);
    EXPECT_EQ(second["lost"], 1);
    EXPECT_EQ(second["rate_mbps"], 0.005);
    EXPECT_TRUE(second["socket_lost"].is_null());
}

}  // namespace
}  // namespace vfmgr::stream
