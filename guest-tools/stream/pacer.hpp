// SPDX-License-Identifier: Apache-2.0
// When each packet of a stream is due, by the clock and not by the packet before it: nothing
// drifts, and what was late does not make the rest late. Pure: time comes from outside; one thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "api/types/time.hpp"
#include "guest-tools/stream/rate.hpp"

namespace vfmgr::stream {

// What of a stream was not sent when it was due.
struct Lateness {
    std::uint64_t chunks = 0;  // handed over at all
    std::uint64_t late = 0;    // when the next one was due already, or later
    std::uint64_t late_max_us = 0;
    bool operator==(Lateness const&) const = default;
};

class Pacer {
  public:
    Pacer(Deadline start, Pace pace) : start_(start), pace_(pace) {}
    // Of packet number `packet`, from 0. A chunk is due with its first packet, so that no more is
    // ever sent than the rate allows and one chunk.
    [[nodiscard]] Deadline due(std::uint64_t packet) const;
    // How many the rate allows in such a time; one at least.
    [[nodiscard]] std::uint64_t packets_in(std::chrono::milliseconds time) const;
    // A chunk of `count` packets from `first` on was handed over.
    void handed_over(std::uint64_t first, std::uint64_t count, Deadline now);
    [[nodiscard]] Lateness const& lateness() const { return lateness_; }

  private:
    Deadline const start_;
    Pace const pace_;
    Lateness lateness_;
};

}  // namespace vfmgr::stream
