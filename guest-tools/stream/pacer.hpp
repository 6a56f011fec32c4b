// SPDX-License-Identifier: Apache-2.0
// When each packet of a stream is due, by the clock and not by the packet before it: nothing
// drifts, and a late packet does not delay the rest. Pure: time is passed in; one thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "api/types/time.hpp"
#include "guest-tools/stream/rate.hpp"

namespace vfmgr::stream {

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
