// SPDX-License-Identifier: Apache-2.0
// Messages that ibv_rc_pingpong, perftest and rping send to their servers, parsed strictly and
// written as they write them (vfmgr/rdma/RDMA.md#rping, and the two headings after it). The
// sender may be hostile. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/types/guest.hpp"

namespace vfmgr::interop {

// --- ibv_rc_pingpong: one line each way, "done", and the connection ends before the test ---

inline constexpr std::size_t pingpong_line_bytes = 52;    // its NUL included
inline constexpr std::uint32_t pingpong_path_mtu = 1024;  // its default; it is not sent

// The MTU is the default.
[[nodiscard]] std::optional<QueuePairEnd> parse_pingpong_line(std::string_view line);
[[nodiscard]] std::string make_pingpong_line(QueuePairEnd const& end);

// --- perftest: the client sends a message, the server answers with one of the same length ---

inline constexpr std::size_t perftest_version_bytes = 16;
inline constexpr std::size_t perftest_line_bytes = 108;  // its NUL included
inline constexpr std::size_t perftest_value_bytes = 8;   // of the client's results
// From 6.28 on both ends exchange a structure whose layout depends on how they were built; an older
// version is not asked for it.
inline constexpr std::string_view perftest_version = "6.06";

// Whether this server understands the version: 5.70 or later.
[[nodiscard]] bool is_perftest_version(std::string_view text);

struct PerftestLine {
    QueuePairEnd end;     // without path MTU, which both ends agree on before
    MemoryRegion memory;  // without length, which is not sent
    bool operator==(PerftestLine const&) const = default;
};
// Tells a line from a result by its first bytes: their order depends on the test.
[[nodiscard]] bool begins_perftest_line(std::string_view bytes);
[[nodiscard]] std::optional<PerftestLine> parse_perftest_line(std::string_view line);
[[nodiscard]] std::string make_perftest_line(PerftestLine const& line);

inline constexpr std::size_t perftest_page_size = 4;  // in bytes, of the page message below
// Reads four bytes, the most significant first. Messages of at most half such a page advance
// through it, one after the other, until it is full (perftest's increase_rem_addr). 0 if invalid.
[[nodiscard]] std::uint32_t perftest_page_bytes(std::string_view text);

// "5" for 4096 bytes, as ibv_mtu numbers them; 0 if invalid.
[[nodiscard]] std::uint32_t perftest_mtu_bytes(std::string_view text);
[[nodiscard]] std::string make_perftest_mtu(std::uint32_t bytes);

// --- rping: where to read from, or to write to ---

inline constexpr std::size_t rping_message_bytes = 16;

[[nodiscard]] MemoryRegion parse_rping_message(
    std::span<std::byte const, rping_message_bytes> message);
[[nodiscard]] std::array<std::byte, rping_message_bytes> make_rping_message(MemoryRegion const& mr);

}  // namespace vfmgr::interop
