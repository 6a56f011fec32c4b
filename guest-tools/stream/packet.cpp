// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/packet.hpp"

#include <endian.h>

#include <cstring>

#include "guest-tools/stream/sequence.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::size_t number_at = 8, check_at = 16, pattern_at = 24;

void put(std::span<std::byte> packet, std::size_t at, std::uint64_t value) {
    auto const little = htole64(value);
    std::memcpy(packet.data() + at, &little, sizeof little);
}

std::uint64_t get(std::span<std::byte const> packet, std::size_t at) {
    std::uint64_t little = 0;
    std::memcpy(&little, packet.data() + at, sizeof little);
    return le64toh(little);
}

// Hashes run, number and length: each of their bits changes about half of the check (splitmix64's
// mixing).
std::uint64_t check_of(std::uint64_t run, std::uint64_t number, std::size_t bytes) {
    auto mixed = run ^ (number * 0x9e3779b97f4a7c15) ^ bytes;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

}  // namespace

void prepare_packet(std::span<std::byte> packet, std::uint64_t run) {
    put(packet, 0, run);
    for (std::size_t i = pattern_at; i < packet.size(); ++i)
        packet[i] = static_cast<std::byte>(i * 31);
}

void number_packet(std::span<std::byte> packet, std::uint64_t run, std::uint64_t number) {
    auto const check = check_of(run, number, packet.size());
    put(packet, number_at, number);
    put(packet, check_at, check);
    put(packet, packet.size() - sizeof check, check);
}

std::optional<std::uint64_t> packet_number(std::span<std::byte const> packet, std::uint64_t run) {
    if (packet.size() < packet_bytes_min || get(packet, 0) != run) return std::nullopt;
    auto const number = get(packet, number_at);
    auto const check = check_of(run, number, packet.size());
    if (number >= sequence_max || get(packet, check_at) != check ||
        get(packet, packet.size() - sizeof check) != check)
        return std::nullopt;
    return number;
}

}  // namespace vfmgr::stream
