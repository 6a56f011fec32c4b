// SPDX-License-Identifier: Apache-2.0
// Which packets of a stream arrived: what is lost, duplicated and out of order, exactly, whatever
// the order of arrival. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "guest-tools/traffic/messages.hpp"

namespace vfmgr::stream {

// How far behind the newest a packet may arrive and still be distinguished from its duplicate.
inline constexpr std::uint64_t sequence_window = 1 << 20;
// Numbers end here, where the bytes of the longest packets still fit into 64 bits: half a year at
// ten million packets per second.
inline constexpr std::uint64_t sequence_max = std::uint64_t{1} << 47;

class Sequence {
  public:
    // `number` is below sequence_max.
    void take(std::uint64_t number);
    [[nodiscard]] SequenceCounts const& counts() const { return counts_; }
    // Returns how many of `sent` packets are lost, the tail included; nothing when more arrived
    // than that.
    [[nodiscard]] std::optional<std::uint64_t> lost_of(std::uint64_t sent) const;

  private:
    void advance(std::uint64_t number);

    SequenceCounts counts_;
    std::uint64_t next_ = 0;  // after the newest that arrived
    std::vector<bool> received_ = std::vector<bool>(sequence_window);  // by number % window
};

// What arrived of one run, in total and in each second. Pure: time is passed in; one thread.

// Counts since the previous interval.
struct Interval {
    std::uint64_t until_us = 0;  // since the run began
    std::uint64_t microseconds = 0;
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::int64_t lost = 0;  // negative when more missing packets arrived late than went missing
    std::uint64_t out_of_order = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t foreign = 0;
    std::optional<std::uint64_t> socket_lost;  // where the socket reports it
    bool operator==(Interval const&) const = default;
};

class Tally {
  public:
    Tally(std::uint64_t run, std::uint32_t packet_bytes, Deadline start)
        : run_(run), packet_bytes_(packet_bytes), start_(start), interval_from_(start) {}
    // Counts a packet that arrived, whole.
    void take(std::span<std::byte const> packet);
    // Counts a packet of so many bytes whose number was read elsewhere. Without a number, or of
    // another length than the run's, it is foreign.
    void take(std::size_t bytes, std::optional<std::uint64_t> number);
    // Records when the last packets were taken, if any of them was of this run.
    void taken_at(Deadline now);
    [[nodiscard]] std::uint64_t received() const { return sequence_.counts().received; }
    [[nodiscard]] Deadline last_at() const { return last_at_; }
    // `socket_lost` is the socket's total.
    [[nodiscard]] Interval interval(Deadline now, std::optional<std::uint64_t> socket_lost);
    // Returns what arrived since the previous interval, up to the last packet of this run; nothing
    // when none of this run did, even if foreign ones did.
    [[nodiscard]] std::optional<Interval> rest(std::optional<std::uint64_t> socket_lost);
    [[nodiscard]] Summary summary(std::optional<Ending> const& sent) const;

  private:
    struct Counted {
        SequenceCounts counts;
        std::uint64_t foreign = 0, socket_lost = 0;
    };

    std::uint64_t const run_;
    std::uint32_t const packet_bytes_;
    Deadline const start_;
    Sequence sequence_;
    std::uint64_t foreign_ = 0;
    std::uint64_t timed_ = 0;  // counted when last_at_ was set
    std::optional<Deadline> first_at_;
    std::uint64_t first_ = 0;  // received when first_at_ was set: they took no time
    Deadline last_at_{};
    Deadline interval_from_;
    Counted before_;  // at the end of the last interval
};

}  // namespace vfmgr::stream
