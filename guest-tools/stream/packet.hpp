// SPDX-License-Identifier: Apache-2.0
// A packet of the stream test: whose it is and which, at its begin, and the same check at its begin
// and its end, so that one of which a part came is none. Little-endian:
//   0 run   8 number   16 check   24 a pattern that nobody reads …   last 8 bytes: check
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vfmgr::stream {

inline constexpr std::uint32_t packet_bytes_min = 32;

// The parts that are the same in each packet of a slot.
void prepare_packet(std::span<std::byte> packet, std::uint64_t run);
void number_packet(std::span<std::byte> packet, std::uint64_t run, std::uint64_t number);
// Its number; nothing when it is not of this run, whole, and unchanged where that is checked.
[[nodiscard]] std::optional<std::uint64_t> packet_number(std::span<std::byte const> packet,
                                                         std::uint64_t run);

}  // namespace vfmgr::stream
