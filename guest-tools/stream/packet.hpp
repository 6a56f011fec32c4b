// SPDX-License-Identifier: Apache-2.0
// A packet of the stream test. It begins with its run and number, and has the same check at its
// beginning and at its end: a packet that arrived only in part does not count. Little-endian:
//   0 run   8 number   16 check   24 a pattern that is never read …   last 8 bytes: check
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vfmgr::stream {

inline constexpr std::uint32_t packet_bytes_min = 32;

// Writes the parts that are the same in each packet of a slot.
void prepare_packet(std::span<std::byte> packet, std::uint64_t run);
void number_packet(std::span<std::byte> packet, std::uint64_t run, std::uint64_t number);
// Returns its number; nothing unless it is of this run, whole, and unchanged where that is checked.
[[nodiscard]] std::optional<std::uint64_t> packet_number(std::span<std::byte const> packet,
                                                         std::uint64_t run);

}  // namespace vfmgr::stream
