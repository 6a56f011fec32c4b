// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/ring.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace vfmgr::stream {
namespace {

Opening of(std::uint32_t packet_bytes, std::uint32_t chunk) {
    Opening opening;
    opening.packet_bytes = packet_bytes;
    opening.chunk = chunk;
    return opening;
}

TEST(Ring, HasAsManyPacketsAsRequested) {
    EXPECT_EQ(ring_packets({}, of(1472, 16), {}), 4096U);
    EXPECT_EQ(ring_packets({}, of(65'507, 1024), {}), (64U << 20) / 65'507);
    EXPECT_EQ(ring_packets({.bytes = 1 << 20}, of(1024, 16), {}), 1024U);
    EXPECT_EQ(ring_packets({.chunks = 3}, of(1472, 16), {}), 48U);
}

TEST(Ring, OfADeviceIsWhatItTakes) {
    EXPECT_EQ(ring_packets({}, of(1024, 16), 1000), 1000U);
    EXPECT_EQ(ring_packets({.chunks = 62}, of(1024, 16), 1000), 992U);
    auto const refused = ring_packets({.chunks = 63}, of(1024, 16), 1000);
    EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
    EXPECT_EQ(
        refused.error().detail,
        "the receiver's ring would have 1008 packets, but its RDMA device takes 1000 receives");
}

TEST(Ring, HasLimitsWhateverTheSenderSays) {
    auto const none = ring_packets({.bytes = 1000}, of(1472, 16), {});
    EXPECT_EQ(none.error().detail,
              "the receiver's ring of 1000 bytes can't hold a packet of 1472 bytes");
    auto const much = ring_packets({.chunks = 256}, of(65'507, 1024), {});
    EXPECT_EQ(much.error().problem, Problem::limit_exceeded);
    EXPECT_FALSE(ring_packets({.chunks = ~std::uint64_t{0}}, of(32, 1024), {}));
    EXPECT_TRUE(ring_packets({.bytes = ring_bytes_max}, of(32, 1), {}));
    EXPECT_FALSE(ring_packets({.bytes = ring_bytes_max + 32}, of(32, 1), {}));
}

TEST(Ring, SlotsAreApartAndComeAround) {
    std::vector<std::byte> memory(Ring::stride(100) * 3);
    Ring const ring({memory, 7}, 100, 3);
    EXPECT_EQ(Ring::stride(100), 128U);
    EXPECT_EQ(ring.slot(2).bytes.data(), memory.data() + 256);
    EXPECT_EQ(ring.slot(2).bytes.size(), 100U);
    EXPECT_EQ(ring.slot(2).key, 7U);
    EXPECT_EQ(ring.slot(5).bytes.data(), ring.slot(2).bytes.data());
}

}  // namespace
}  // namespace vfmgr::stream
