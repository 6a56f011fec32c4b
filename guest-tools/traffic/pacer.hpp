// SPDX-License-Identifier: Apache-2.0
// Rates, packets, and the pace at which packets leave. Pure, except the pacer's clock; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::stream {

// How fast a stream is sent: bits per second in iproute2's notation, or packets per second. Values;
// pure.

// One packet costs `cost` of `per_second`: its bits if the rate is in bit/s, 1 if it is in packets.
struct Pace {
    std::uint64_t cost = 1;
    std::uint64_t per_second = 1;
    bool operator==(Pace const&) const = default;
};

// Parses tc(8)'s notation: "100Mbit", "2.5gbit", "1gibit", "12.5MBps" (bytes per second), a bare
// number in bit/s; case does not matter. From 1 bit/s to 10 Tbit/s.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);

// A packet of the stream test. It begins with its run and number, and has the same check at its
// beginning and at its end: a packet that arrived only in part does not count. Little-endian:
//   0 run   8 number   16 check   24 a pattern that is never read …   last 8 bytes: check
// Pure; any thread.

inline constexpr std::uint32_t packet_bytes_min = 32;

// Writes the parts that are the same in each packet of a slot.
void prepare_packet(std::span<std::byte> packet, std::uint64_t run);
void number_packet(std::span<std::byte> packet, std::uint64_t run, std::uint64_t number);
// Returns its number; nothing unless it is of this run, whole, and unchanged where that is checked.
[[nodiscard]] std::optional<std::uint64_t> packet_number(std::span<std::byte const> packet,
                                                         std::uint64_t run);

// When each packet of a stream is due, by the clock and not by the packet before it: nothing
// drifts, and a late packet does not delay the rest. Pure: time is passed in; one thread.

// How much of a stream was not sent when it was due.
struct Lateness {
    std::uint64_t chunks = 0;  // all that were sent
    std::uint64_t late = 0;    // sent when the next one was already due, or later
    std::uint64_t late_max_us = 0;
    bool operator==(Lateness const&) const = default;
};

class Pacer {
  public:
    Pacer(Deadline start, Pace pace) : start_(start), pace_(pace) {}
    // When packet number `packet`, from 0, is due. A chunk is due with its first packet: a stream
    // never exceeds the rate by more than one chunk.
    [[nodiscard]] Deadline due(std::uint64_t packet) const;
    // Returns how many packets the rate allows in that time; at least one.
    [[nodiscard]] std::uint64_t packets_in(std::chrono::milliseconds time) const;
    // Counts a chunk of `count` packets from `first` on as sent.
    void count_sent(std::uint64_t first, std::uint64_t count, Deadline now);
    [[nodiscard]] Lateness const& lateness() const { return lateness_; }

  private:
    Deadline const start_;
    Pace const pace_;
    Lateness lateness_;
};

}  // namespace vfmgr::stream
