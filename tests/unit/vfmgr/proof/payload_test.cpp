// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/random_payload.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;
constexpr std::size_t chunk = payload_chunk_bytes;

std::vector<std::byte> filled(Payload const& payload, std::uint64_t offset, std::size_t bytes) {
    std::vector<std::byte> memory(bytes);
    fill(payload, offset, memory);
    return memory;
}

TEST(Payload, IntactBytesPass) {
    auto const payload = Payload::from_seed(42, 1);
    auto const memory = filled(payload, 0, 100 * 1024);
    auto const result = check(payload, 0, memory);
    EXPECT_EQ(result.bytes_checked, memory.size());
    EXPECT_EQ(result.mismatches, 0U);
    EXPECT_EQ(result.detail, "");
    EXPECT_FALSE(result.untouched);
}

// draft-strombergson-chacha-test-vectors-01, TC1: 256 bits of key, 8 rounds, two blocks.
TEST(Payload, IsChaChasStreamBehindTheStamps) {
    auto const memory = filled(Payload{}, 0, 2 * chunk);
    std::string hex;
    for (auto const byte : memory) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    EXPECT_EQ(hex.substr(32, 96),
              "2c840ec3ce9a7f3b181be188ef711a1e984ce172b9216f419f445367456d5619"
              "314a42a3da86b001387bfdb80e0cfe42");
    EXPECT_EQ(hex.substr(128 + 32),
              "c0fd581259f9a2aadcf20f8fd566a26b5032ec38bbc5da98ee0c6f568b872a65"
              "a08abf251deb21bb4b56e5d8821e68aa");
}

TEST(Payload, APartIsTheSameAsInTheWhole) {
    auto const payload = Payload::from_seed(42, 1);
    auto const whole = filled(payload, 0, 64 * chunk);
    auto const part = filled(payload, 10 * chunk, 5 * chunk);
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + 10 * chunk, part.size()), 0);
}

TEST(Payload, ChunksCarryOffsetAndEpoch) {
    auto const memory = filled(Payload::from_seed(1, 7), 3 * chunk, chunk);
    EXPECT_EQ(std::to_integer<unsigned>(memory[0]), 3 * chunk);
    EXPECT_EQ(std::to_integer<unsigned>(memory[8]), 7U);
}

TEST(Payload, SeedsEpochsAndSecretsDiffer) {
    auto const tail = [](Payload const& payload) {
        auto memory = filled(payload, 0, chunk);
        memory.erase(memory.begin(), memory.begin() + 16);  // without the stamp
        return memory;
    };
    auto const one = tail(Payload::from_seed(1, 1));
    EXPECT_NE(one, tail(Payload::from_seed(2, 1)));
    EXPECT_NE(one, tail(Payload::from_seed(1, 2)));
    EXPECT_NE(tail(Payload::secret(1)), tail(Payload::secret(1)));
}

TEST(Payload, NamesAMisplacedChunk) {
    auto const payload = Payload::from_seed(42, 1);
    auto memory = filled(payload, 0, 64 * chunk);
    std::copy_n(memory.begin() + 17 * chunk, chunk, memory.begin() + 18 * chunk);
    auto const result = check(payload, 0, memory);
    EXPECT_GT(result.mismatches, 0U);
    EXPECT_LE(result.mismatches, chunk);
    EXPECT_EQ(result.detail, "chunk 17 landed at chunk 18");
}

TEST(Payload, NamesAStaleChunk) {
    auto const payload = Payload::from_seed(42, 2);
    auto memory = filled(payload, 0, 64 * chunk);
    fill(Payload::from_seed(42, 1), 5 * chunk, std::span(memory).subspan(5 * chunk, chunk));
    EXPECT_EQ(check(payload, 0, memory).detail, "chunk 5 is stale: of epoch 1, expected 2");
}

TEST(Payload, NamesAFlippedBitAcrossBlocks) {
    auto const payload = Payload::from_seed(42, 1);
    auto memory = filled(payload, 0, 1024 * chunk);
    auto const at = 700 * chunk + 33;
    memory[at] ^= std::byte{4};
    auto const result = check(payload, 0, memory);
    EXPECT_EQ(result.mismatches, 1U);
    EXPECT_THAT(result.detail, HasSubstr("chunk 700 differs from byte " + std::to_string(at)));
}

TEST(Payload, NamesWhatWasNeverWritten) {
    auto const payload = Payload::from_seed(42, 1);
    auto memory = filled(payload, 0, 8 * chunk);
    poison(std::span(memory).subspan(2 * chunk, chunk));
    auto const result = check(payload, 0, memory);
    EXPECT_EQ(result.detail, "chunk 2 was never written");
    EXPECT_FALSE(result.untouched);
    poison(memory);
    EXPECT_TRUE(check(payload, 0, memory).untouched);
}

// The stream's counter has 32 bits: a chunk has the same bytes as the one 2^32 further on.
TEST(Payload, TakesNoFlippedBitOfAStampForAnotherChunk) {
    auto const payload = Payload::from_seed(42, 1);
    for (std::size_t bit = 0; bit < 128; ++bit) {
        auto memory = filled(payload, 0, 8 * chunk);
        auto const at = 3 * chunk + bit / 8;
        memory[at] ^= std::byte{1} << static_cast<int>(bit % 8);
        EXPECT_THAT(check(payload, 0, memory).detail,
                    HasSubstr("chunk 3 differs from byte " + std::to_string(at)))
            << bit;
    }
}

// The guest may write any stamp: a wild offset must not confuse the explanation.
TEST(Payload, SurvivesForgedStamps) {
    auto const payload = Payload::from_seed(42, 1);
    auto memory = filled(payload, 0, 8 * chunk);
    std::fill_n(memory.begin() + chunk, 16, std::byte{0xff});
    auto const result = check(payload, 0, memory);
    EXPECT_THAT(result.detail, HasSubstr("chunk 1 differs"));
}

}  // namespace
}  // namespace vfmgr::verify
