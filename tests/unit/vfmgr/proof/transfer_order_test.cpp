// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/transfer_order.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace vfmgr::verify {
namespace {

constexpr TransferLimits limits{.mr_bytes = 1 << 20, .message_bytes = 65536};
constexpr TransferOrder honest_order{TransferDirection::read, PayloadOf::host, 7, 983040, 65536};

std::vector<std::byte> bytes_of(TransferOrder const& order) {
    auto const message = encode(order);
    return {message.begin(), message.end()};
}

TEST(TransferOrder, IsTheSameAtTheOtherEnd) {
    auto const read = parse_order(encode(honest_order), limits);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read, honest_order);
    TransferOrder const other{TransferDirection::write, PayloadOf::seed, ~0ULL, 0, 64};
    EXPECT_EQ(parse_order(encode(other), limits).value(), other);
}

// As api/openapi-guest.yaml documents: the bytes on the wire are always little-endian.
TEST(TransferOrder, HasTheBytesThatAreDocumented) {
    auto const message = bytes_of({TransferDirection::read, PayloadOf::seed, 0x0102, 64, 128});
    EXPECT_EQ(std::string(reinterpret_cast<char const*>(message.data()), 8), "vfmgrTO1");
    EXPECT_EQ(message[8], std::byte{2});
    EXPECT_EQ(message[12], std::byte{1});
    EXPECT_EQ(message[16], std::byte{2});
    EXPECT_EQ(message[17], std::byte{1});
    EXPECT_EQ(message[24], std::byte{64});
    EXPECT_EQ(message[32], std::byte{128});
}

TEST(TransferOrder, ReachesNothingBeyondTheGuestsMemory) {
    struct Row {
        TransferOrder order;
        char const* detail;
    };
    auto const of = [](std::uint64_t offset, std::uint64_t bytes) {
        return TransferOrder{TransferDirection::write, PayloadOf::seed, 0, offset, bytes};
    };
    for (auto const& [order, detail] : std::vector<Row>{
             {of(0, 0), "an order is for 0 bytes: it must be for 64 to 65536, a multiple of 64"},
             {of(0, 65), "for 65 bytes"},
             {of(0, 65600), "for 65600 bytes"},
             {of(32, 64), "64 bytes at 32, which is misaligned or not within the guest's 1048576"},
             {of(1048576, 64), "at 1048576"},
             {of(1048512, 128), "at 1048512"},
             {of(~0ULL - 63, 64), "at 18446744073709551552"},
             {of(0, ~0ULL - 63), "for 18446744073709551552 bytes"}}) {
        auto const read = parse_order(encode(order), limits);
        ASSERT_FALSE(read) << detail;
        EXPECT_EQ(read.error().problem, Problem::invalid_request);
        EXPECT_NE(read.error().detail.find(detail), std::string::npos) << read.error().detail;
    }
    EXPECT_TRUE(parse_order(encode(of(1048512, 64)), limits));
}

TEST(TransferOrder, IsRefusedWhenItIsSomethingElse) {
    auto const refused = [](std::vector<std::byte> message, char const* detail) {
        auto const read = parse_order(message, limits);
        ASSERT_FALSE(read) << detail;
        EXPECT_NE(read.error().detail.find(detail), std::string::npos) << read.error().detail;
    };
    auto message = bytes_of(honest_order);
    message.pop_back();
    refused(message, "has 39 bytes instead of 40");
    message = bytes_of(honest_order);
    message[0] = std::byte{'V'};
    refused(message, "not an order to transfer");
    message = bytes_of(honest_order);
    message[8] = std::byte{3};
    refused(message, "direction is 3, neither 1 nor 2");
    message = bytes_of(honest_order);
    message[12] = std::byte{0};
    refused(message, "payload is 0, neither 1 nor 2");
}

TEST(TransferAnswer, IsTheSameAtTheOtherEnd) {
    TransferAnswer const answer{10, 4096, "chunk 17 landed at chunk 18"};
    EXPECT_EQ(parse_answer(encode(answer)).value(), answer);
    EXPECT_EQ(parse_answer(encode(TransferAnswer{})).value(), TransferAnswer{});
}

TEST(TransferAnswer, CutsOffWhatDoesNotFit) {
    TransferAnswer const answer{0, 1, std::string(500, 'x')};
    EXPECT_EQ(parse_answer(encode(answer)).value().detail, std::string(transfer_detail_max, 'x'));
}

TEST(TransferAnswer, IsRefusedWhenItCantBeShown) {
    auto message = encode(TransferAnswer{0, 0, "red"});
    message[24] = std::byte{0x1b};
    EXPECT_FALSE(parse_answer(message));
    message = encode(TransferAnswer{});
    message[12] = std::byte{105};
    EXPECT_NE(parse_answer(message).error().detail.find("has 105 bytes, more than 104"),
              std::string::npos);
    EXPECT_FALSE(parse_answer(std::span(message).first(100)));
    EXPECT_FALSE(parse_answer(std::vector<std::byte>(128)));
}

}  // namespace
}  // namespace vfmgr::verify
