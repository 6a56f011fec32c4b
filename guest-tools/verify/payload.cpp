// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/payload.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "api/os/random.hpp"
#include "guest-tools/verify/chacha.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::size_t block_bytes = 256 * payload_chunk_bytes;
constexpr std::uint64_t counter_max = 0xffffffff;

struct Stamp {
    std::uint64_t offset = 0;  // little-endian in memory
    std::uint64_t epoch = 0;
};

Stamp read_stamp(std::span<std::byte const> chunk) {
    Stamp stamp;
    std::memcpy(&stamp.offset, chunk.data(), 8);
    std::memcpy(&stamp.epoch, chunk.data() + 8, 8);
    return {le64toh(stamp.offset), le64toh(stamp.epoch)};
}

void write_stamp(std::span<std::byte> chunk, Stamp stamp) {
    stamp = {htole64(stamp.offset), htole64(stamp.epoch)};
    std::memcpy(chunk.data(), &stamp.offset, 8);
    std::memcpy(chunk.data() + 8, &stamp.epoch, 8);
}

// A block is 64 bytes, so chunk n is block n of the stream.
void keystream(Payload const& payload, std::uint64_t offset, std::span<std::byte> out) {
    static_assert(chacha_block_bytes == payload_chunk_bytes);
    chacha_blocks({payload.key, payload.epoch},
                  static_cast<std::uint32_t>(offset / payload_chunk_bytes), out);
}

std::string first_byte_that_differs(std::size_t place, std::span<std::byte const> found,
                                    std::span<std::byte const> expected) {
    auto const at = std::ranges::mismatch(found, expected);
    auto const index = static_cast<std::size_t>(at.in1 - found.begin());
    return fmt::format("chunk {} differs from byte {} on: 0x{:02x}, expected 0x{:02x}", place,
                       place * payload_chunk_bytes + index, std::to_integer<unsigned>(*at.in1),
                       std::to_integer<unsigned>(*at.in2));
}

// Explains in one sentence why the chunk at `offset` is wrong.
std::string explain(Payload const& payload, std::uint64_t offset, std::span<std::byte const> found,
                    std::span<std::byte const> expected) {
    auto const place = offset / payload_chunk_bytes;
    if (std::ranges::all_of(found, [](std::byte b) { return b == poison_byte; }))
        return fmt::format("chunk {} was never written", place);
    auto const stamp = read_stamp(found);
    std::array<std::byte, payload_chunk_bytes> other{};
    // Beyond the stream's counter, chunks repeat: such an offset belongs to no chunk.
    bool const possible = stamp.offset % payload_chunk_bytes == 0 &&
                          stamp.offset / payload_chunk_bytes <= counter_max;
    if (possible && stamp.offset != offset) {
        fill(payload, stamp.offset, other);
        if (std::ranges::equal(found, other))
            return fmt::format("chunk {} landed at chunk {}", stamp.offset / payload_chunk_bytes,
                               place);
    }
    if (stamp.offset == offset && stamp.epoch != payload.epoch) {
        fill(Payload{payload.key, stamp.epoch}, offset, other);
        if (std::ranges::equal(found, other))
            return fmt::format("chunk {} is stale: of epoch {}, expected {}", place, stamp.epoch,
                               payload.epoch);
    }
    return first_byte_that_differs(place, found, expected);
}

}  // namespace

Payload Payload::from_seed(std::uint64_t seed, std::uint64_t epoch) {
    Payload payload{{}, epoch};
    auto const value = htole64(seed);
    std::memcpy(payload.key.data(), &value, 8);
    return payload;
}

Payload Payload::secret(std::uint64_t epoch) {
    Payload payload{{}, epoch};
    random_bytes(payload.key);
    return payload;
}

void fill(Payload const& payload, std::uint64_t offset, std::span<std::byte> memory) {
    assert(offset % payload_chunk_bytes == 0 && memory.size() % payload_chunk_bytes == 0);
    keystream(payload, offset, memory);
    for (std::size_t at = 0; at < memory.size(); at += payload_chunk_bytes)
        write_stamp(memory.subspan(at, payload_chunk_bytes), {offset + at, payload.epoch});
}

void poison(std::span<std::byte> memory) {
    std::ranges::fill(memory, poison_byte);
}

void PayloadCheck::add(PayloadCheck const& other) {
    bytes_checked += other.bytes_checked;
    mismatches += other.mismatches;
    if (detail.empty()) detail = other.detail;
}

PayloadCheck check(Payload const& payload, std::uint64_t offset,
                   std::span<std::byte const> memory) {
    assert(offset % payload_chunk_bytes == 0 && memory.size() % payload_chunk_bytes == 0);
    PayloadCheck result;
    result.bytes_checked = memory.size();
    result.untouched = std::ranges::all_of(memory, [](std::byte b) { return b == poison_byte; });
    std::vector<std::byte> expected(std::min(block_bytes, memory.size()));
    for (std::size_t block = 0; block < memory.size(); block += block_bytes) {
        auto const found = memory.subspan(block, std::min(block_bytes, memory.size() - block));
        auto const block_expected = std::span(expected).first(found.size());
        fill(payload, offset + block, block_expected);
        if (std::memcmp(found.data(), block_expected.data(), found.size()) == 0) continue;
        for (std::size_t at = 0; at < found.size(); ++at)
            if (found[at] != block_expected[at]) ++result.mismatches;
        if (!result.detail.empty()) continue;
        for (std::size_t at = 0; at < found.size(); at += payload_chunk_bytes) {
            auto const a = found.subspan(at, payload_chunk_bytes);
            auto const b = block_expected.subspan(at, payload_chunk_bytes);
            if (std::ranges::equal(a, b)) continue;
            result.detail = explain(payload, offset + block + at, a, b);
            break;
        }
    }
    return result;
}

}  // namespace vfmgr::verify
