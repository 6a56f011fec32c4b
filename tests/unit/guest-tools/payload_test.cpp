// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/payload.hpp"

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

// The stream's counter has 32 bits: a chunk has the bytes of the one 2^32 further on.
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

// A stamp is the guest's to write: a wild offset must not confuse the explanation.
TEST(Payload, SurvivesForgedStamps) {
    auto const payload = Payload::from_seed(42, 1);
    auto memory = filled(payload, 0, 8 * chunk);
    std::fill_n(memory.begin() + chunk, 16, std::byte{0xff});
    auto const result = check(payload, 0, memory);
    EXPECT_THAT(result.detail, HasSubstr("chunk 1 differs"));
}

}  // namespace
}  // namespace vfmgr::verify
