// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/pacer.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "guest-tools/traffic/tally.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint64_t run = 0x1234'5678'9abc'def0;

std::vector<std::byte> packet(std::size_t bytes, std::uint64_t number) {
    std::vector<std::byte> made(bytes);
    prepare_packet(made, run);
    number_packet(made, run, number);
    return made;
}

TEST(Packet, TellsItsNumber) {
    for (std::size_t const bytes : {32U, 33U, 1472U, 65'507U})
        for (std::uint64_t const number : {std::uint64_t{0}, std::uint64_t{77}, sequence_max - 1})
            EXPECT_EQ(packet_number(packet(bytes, number), run), number);
}

TEST(Packet, OfAnotherRunIsForeign) {
    EXPECT_EQ(packet_number(packet(64, 1), run + 1), std::nullopt);
    EXPECT_EQ(packet_number(std::vector<std::byte>(64), run), std::nullopt);
    EXPECT_EQ(packet_number({}, run), std::nullopt);
}

TEST(Packet, BeyondTheNumbersIsForeign) {
    EXPECT_EQ(packet_number(packet(64, sequence_max), run), std::nullopt);
}

TEST(Packet, APartOfItIsForeign) {
    auto const whole = packet(1472, 5);
    for (std::size_t const bytes : {24U, 31U, 32U, 1471U})
        EXPECT_EQ(packet_number(std::span(whole).first(bytes), run), std::nullopt) << bytes;
    // The same length, and the end of the one before in this slot.
    auto stale = packet(1472, 5);
    number_packet(stale, run, 4);
    std::copy_n(whole.begin(), 736, stale.begin());
    EXPECT_EQ(packet_number(stale, run), std::nullopt);
}

TEST(Packet, EachBitOfItsHeadIsChecked) {
    auto const whole = packet(64, 5);
    for (std::size_t bit = 0; bit < 24 * 8; ++bit) {
        auto flipped = whole;
        flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        EXPECT_EQ(packet_number(flipped, run), std::nullopt) << bit;
    }
}

}  // namespace
}  // namespace vfmgr::stream
