// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/messages.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "summary_of_packets.hpp"

namespace vfmgr::stream {
namespace {

using test::summary_of_packets;

Opening opening() {
    return {.run = "0123456789abcdef", .over = Over::udp, .packet_bytes = 1472, .chunk = 16};
}

std::string line(auto const& value) {
    return to_json_text(nlohmann::json(value));
}

TEST(StreamMessages, AreReadAsTheyAreWritten) {
    EXPECT_EQ(read_opening(line(opening())), opening());
    auto over_ud = opening();
    over_ud.over = Over::ud;
    over_ud.packet_bytes = 4096;
    over_ud.pair = QueuePairEnd{"00000000000000000000ffffc0a8640a", 17, 5, 4096, 1};
    EXPECT_EQ(read_opening(line(over_ud)), over_ud);
    Acceptance const accepted{.udp_port = 18525};
    EXPECT_EQ(read_acceptance(line(accepted), Over::udp), accepted);
    Ending const ending{1000, 998'000, {63, 2, 913}, 4};
    EXPECT_EQ(read_ending(line(ending)), ending);
    auto summary = summary_of_packets(1472);
    EXPECT_EQ(read_summary(line(summary)), summary);
    summary.sent = ending;
    summary.received = 990;
    summary.lost = 10;
    summary.socket_lost = 3;
    EXPECT_EQ(read_summary(line(summary)), summary);
    EXPECT_EQ(summary.bytes(), 990U * 1472);
    summary.ring = {Memory::gpu, PciAddress{0, 0x1b, 0, 0}, verify::Route::staged};
    EXPECT_EQ(read_summary(line(summary)), summary);
    summary.ring.route.reset();
    EXPECT_FALSE(read_summary(line(summary)));
}

TEST(StreamMessages, AnotherVersionIsNamedWhateverElseItSays) {
    auto const refused = read_opening(R"({"version":7,"lanes":[1,2]})");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_EQ(refused.error().detail,
              "the sender's stream test has version 7, the receiver's has version 1");
    EXPECT_EQ(refused.error().remedy, "use the same version of vf-guest on both machines");
}

TEST(StreamMessages, ARefusalIsTheReceiversError) {
    Error error{Problem::unsupported, "packets of 2048 bytes do not fit", "send 1024"};
    auto const refused = read_acceptance(line(Acceptance{.refusal = error}), Over::ud);
    ASSERT_FALSE(refused);
    error.detail = "the receiver refused: packets of 2048 bytes do not fit";
    EXPECT_EQ(refused.error(), error);
}

TEST(StreamMessages, ATerminalIsSafeFromARefusal) {
    Error const error{Problem::unsupported, "\x1b[2Jgone", "none"};
    auto const refused = read_acceptance(line(Acceptance{.refusal = error}), Over::udp);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::guest_refused);
    EXPECT_EQ(refused.error().detail.find('\x1b'), std::string::npos);
    auto const key = read_opening(R"({"\u001b[2J":1})");
    EXPECT_EQ(key.error().detail.find('\x1b'), std::string::npos) << key.error().detail;
    EXPECT_NE(key.error().detail.find("(and "), std::string::npos);
}

TEST(StreamMessages, TheReceiversEndMustBeOfTheSameKind) {
    EXPECT_FALSE(read_acceptance(R"({"udp_port":18525})", Over::ud));
    EXPECT_FALSE(read_acceptance(R"({})", Over::udp));
    EXPECT_FALSE(read_acceptance(R"({"udp_port":0})", Over::udp));
}

struct Refused {
    char const* key;
    nlohmann::json value;
    char const* why;
};

TEST(StreamMessages, ValuesHaveLimits) {
    for (auto const& [key, value, why] :
         {Refused{"packet_bytes", 31, "must be from 32 to 65507 over udp"},
          Refused{"packet_bytes", 65'508, "must be from 32 to 65507 over udp"},
          Refused{"chunk", 0, "must be from 1 to 1024"}, Refused{"chunk", 1025, "1024"},
          Refused{"run", "0123", "16 hexadecimal"}, Refused{"run", "0123456789ABCDEF", "16 hex"},
          Refused{"over", "tcp", "one of udp, ud"}, Refused{"over", "ud", "present with ud"},
          Refused{"lanes", 2, "is not known here"}}) {
        nlohmann::json changed(opening());
        changed[key] = value;
        auto const refused = read_opening(changed.dump());
        ASSERT_FALSE(refused) << key;
        EXPECT_NE(refused.error().detail.find(why), std::string::npos) << refused.error().detail;
    }
    auto const last = std::to_string(std::uint64_t{1} << 47);
    auto const ending = [](std::string const& packets) {
        return read_ending(R"({"packets":)" + packets +
                           R"(,"microseconds":1,"chunks":0,"late_chunks":0,"late_max_us":0,)"
                           R"("filtered":0})");
    };
    EXPECT_TRUE(ending(last));
    EXPECT_FALSE(ending(last + "0"));
    EXPECT_FALSE(ending("-1"));
}

TEST(StreamMessages, ASummaryAddsUp) {
    auto summary = summary_of_packets(64);
    summary.sent = Ending{.packets = 10};
    summary.lost = 3;
    summary.received = 8;
    EXPECT_FALSE(read_summary(line(summary)));
    summary.received = 7;
    EXPECT_TRUE(read_summary(line(summary)));
    summary.timed = 8;
    EXPECT_FALSE(read_summary(line(summary)));
    summary.timed = 7;
    EXPECT_TRUE(read_summary(line(summary)));
    summary.sent.reset();
    EXPECT_FALSE(read_summary(line(summary)));
}

}  // namespace
}  // namespace vfmgr::stream
