// SPDX-License-Identifier: Apache-2.0
// A stream's ring in the memory of a stand-in GPU, over UDP: there is no RDMA device where unit
// tests run (the scenario stream has one).
#include "guest-tools/gpu/gpu_ring.hpp"

#include <gmock/gmock.h>

#include <future>
#include <random>

#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/receiver.hpp"
#include "guest-tools/traffic/sender.hpp"
#include "tests/unit/guest-tools/gpu/standin_gpu.hpp"

namespace vfmgr::guest::gpu {
namespace {

using namespace std::chrono_literals;
using stream::Arrival;
using testing::HasSubstr;
auto const here = IpAddress::parse("127.0.0.1").value();
constexpr std::uint64_t ring_run = 1234;

std::unique_ptr<GpuRings> open_rings(std::string const& personality = "h200") {
    FoundGpus found;
    found.cuda = open_standin(personality).value();
    found.gpus = list_gpus(*found.cuda).value();
    return GpuRings::open(std::move(found), 0).value();
}

std::vector<std::byte> packet(std::uint64_t number, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    stream::prepare_packet(made, ring_run);
    stream::number_packet(made, ring_run, number);
    return made;
}

// A ring of seven, as a socket fills it.
struct OneRing {
    std::unique_ptr<GpuRings> const rings = open_rings();
    std::unique_ptr<stream::RingMemory> const ring =
        rings->make({ring_run, 100, 7}, nullptr).value();
    stream::Tally tally{ring_run, 100, Deadline{}};

    Arrival put(std::uint32_t slot, std::vector<std::byte> const& bytes) const {
        std::ranges::copy(bytes, ring->slot(slot).bytes.begin());
        return {slot, static_cast<std::uint32_t>(bytes.size())};
    }
    stream::Summary take(std::vector<Arrival> const& arrived) {
        EXPECT_TRUE(ring->take(arrived, tally));
        return tally.summary({});
    }
};

TEST(GpuRing, SaysWhereItIs) {
    OneRing const one;
    EXPECT_EQ(one.ring->place(), (stream::RingPlace{stream::Memory::gpu, PciAddress{0, 0x1b, 0, 0},
                                                    verify::Route::staged}));
}

TEST(GpuRing, CountsWhatTheGpuFindsInItsSlots) {
    OneRing one;
    auto damaged = packet(3, 100);
    damaged.back() ^= std::byte{1};
    auto const sum =
        one.take({one.put(0, packet(0, 100)), one.put(1, packet(1, 100)), one.put(2, packet(2, 90)),
                  one.put(3, damaged), one.put(5, packet(5, 100)), one.put(6, packet(4, 100))});
    EXPECT_EQ(sum.received, 4U);
    EXPECT_EQ(sum.missing, 2U);
    EXPECT_EQ(sum.out_of_order, 1U);
    EXPECT_EQ(sum.foreign, 2U);
}

// A batch makes one copy per contiguous range, wherever the stage and the ring end.
TEST(GpuRing, LongerThanAStage) {
    auto const rings = open_rings();
    constexpr std::uint32_t count = 300;
    auto const ring = rings->make({ring_run, 64, count}, nullptr).value();
    stream::Tally tally(ring_run, 64, Deadline{});
    std::uint64_t number = 0;
    for (auto const& [from, to] : {std::pair{0U, 200U}, {200U, 300U}, {0U, 256U}, {256U, 300U}}) {
        std::vector<Arrival> arrived;
        for (auto slot = from; slot < to; ++slot) {
            std::ranges::copy(packet(number++, 64), ring->slot(slot).bytes.begin());
            if (slot % 50 != 7) arrived.push_back({slot, 64});  // e.g. one that was too long
        }
        ASSERT_TRUE(ring->take(arrived, tally));
    }
    auto const sum = tally.summary(stream::Ending{.packets = number});
    EXPECT_EQ(sum.received, number - 12);
    EXPECT_EQ(sum.lost, 12U);
    EXPECT_EQ(sum.foreign, 0U);
}

TEST(GpuRing, ReadsPacketsAsTheHostDoes) {
    auto const rings = open_rings();
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        auto const bytes = 32 + random() % 97;
        auto made = packet(random() % 2 == 0 ? random() >> 17U : random() >> 16U, bytes);
        if (random() % 3 == 0) made[random() % bytes] ^= std::byte{16};
        if (random() % 5 == 0) made.resize(random() % bytes + 1);
        auto const size = static_cast<std::uint32_t>(made.size());
        auto const ring = rings->make({ring_run, 128, 1}, nullptr).value();
        std::ranges::copy(made, ring->slot(0).bytes.begin());
        stream::Tally there(ring_run, size, Deadline{}), beside(ring_run, size, Deadline{});
        ASSERT_TRUE(ring->take(std::vector{Arrival{0, size}}, there));
        beside.take(made);
        EXPECT_EQ(there.summary({}), beside.summary({})) << "round " << round;
    }
}

TEST(GpuRing, ThatDoesNotFitTellsWhatIsFree) {
    auto const rings = open_rings();
    auto const refused = rings->make({ring_run, 4096, 40'000'000}, nullptr);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
    EXPECT_EQ(refused.error().detail,
              "the receiver's ring would have 163840000000 bytes, but its GPU 0000:1b:00.0 has "
              "150754820096 free");
    EXPECT_THAT(refused.error().remedy, HasSubstr("--ring-bytes"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("--memory host"));
}

TEST(GpuRing, OfAGeForceTakesNothingFromANic) {
    auto const rings = open_rings("geforce");
    EXPECT_TRUE(rings->make({ring_run, 1024, 16}, nullptr));
    verify::Endpoint const endpoint;
    auto const refused = rings->make({ring_run, 1024, 16}, &endpoint);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail,
                HasSubstr("NVIDIA GeForce RTX 3090 at 0000:1b:00.0 offers no GPUDirect RDMA"));
    EXPECT_EQ(
        refused.error().remedy,
        "stream over udp, whose packets are copied to the GPU, or receive with --memory host");
}

TEST(GpuRing, WhatTheDriverDoesNotCompileIsToldAtOnce) {
    FoundGpus found;
    found.cuda = open_standin("no-ptx").value();
    found.gpus = list_gpus(*found.cuda).value();
    EXPECT_THAT(GpuRings::open(std::move(found), 0).error().detail, HasSubstr("could not compile"));
}

// Both ends over the loopback device.
Result<stream::Summary> streamed(std::string const& personality) {
    auto const rings = open_rings(personality);
    std::promise<std::uint16_t> ready;
    stream::RingPlace told;
    auto received = std::async(std::launch::async, [&] {
        stream::ReceiveOptions options;
        options.local = here;
        options.port = 0;
        options.time = 20s;
        options.ring.chunks = 10;  // so it wraps around
        options.make_ring = [&](auto const& shape, auto const* endpoint) {
            return rings->make(shape, endpoint);
        };
        stream::ReceiveEvents events;
        events.ready = [&](std::uint16_t endpoint) { ready.set_value(endpoint); };
        events.begun = [&](stream::Opening const&, IpAddress const&,
                           stream::RingPlace const& ring) { told = ring; };
        events.second = [](stream::Interval const&) {};
        return stream::receive(options, events, -1);
    });
    stream::SendOptions options;
    options.to = here;
    options.port = ready.get_future().get();
    options.packet_bytes = 251;
    options.packets = 1000;
    options.packets_per_second = 20'000;
    auto const sent = stream::send(options, [](stream::Opening const&) {}, -1);
    auto const counted = received.get();
    EXPECT_TRUE(sent == counted) << (sent ? "" : detail_with_causes(sent.error()));
    EXPECT_EQ(told.route, verify::Route::staged);
    return counted;
}

TEST(GpuRing, LosesNothingOverUdp) {
    for (auto const* const personality : {"h200", "geforce", "unordered"}) {
        auto const sum = streamed(personality);
        ASSERT_TRUE(sum) << sum.error().detail;
        EXPECT_TRUE(sum->nothing_lost());
        EXPECT_EQ(sum->received, 1000U);
        EXPECT_EQ(sum->foreign, 0U);
        EXPECT_EQ(sum->ring_packets, 160U);
        EXPECT_EQ(sum->ring.memory, stream::Memory::gpu);
    }
}

// Main memory has it whole: what the GPU finds counts.
TEST(GpuRing, APacketThatIsDamagedInTheGpuIsLost) {
    auto const sum = streamed("damaged");
    ASSERT_TRUE(sum) << sum.error().detail;
    EXPECT_EQ(sum->lost, 1U);
    EXPECT_EQ(sum->foreign, 1U);
    EXPECT_EQ(sum->received, 999U);
}

}  // namespace
}  // namespace vfmgr::guest::gpu
