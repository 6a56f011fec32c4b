// SPDX-License-Identifier: Apache-2.0
// Which packets of a stream arrived: what is lost, duplicated and out of order, exactly, whatever
// the order of arrival. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vfmgr::stream {

// How far behind the newest a packet may arrive and still be distinguished from its duplicate.
inline constexpr std::uint64_t sequence_window = 1 << 20;
// Numbers end here, where the bytes of the longest packets still fit into 64 bits: half a year at
// ten million packets per second.
inline constexpr std::uint64_t sequence_max = std::uint64_t{1} << 47;

struct SequenceCounts {
    std::uint64_t received = 0;      // each once
    std::uint64_t missing = 0;       // below the newest, so far
    std::uint64_t out_of_order = 0;  // of the received: arrived after a newer one (RFC 4737)
    std::uint64_t duplicates = 0;
    std::uint64_t too_late = 0;  // beyond the window: late or duplicate, and counted as missing
    bool operator==(SequenceCounts const&) const = default;
};

class Sequence {
  public:
    // `number` is below sequence_max.
    void take(std::uint64_t number);
    [[nodiscard]] SequenceCounts const& counts() const { return counts_; }
    // The number after the newest that arrived.
    [[nodiscard]] std::uint64_t next() const { return next_; }
    // Returns how many of `sent` packets are lost, the tail included; nothing when more arrived
    // than that.
    [[nodiscard]] std::optional<std::uint64_t> lost_of(std::uint64_t sent) const;

  private:
    void advance(std::uint64_t number);
    [[nodiscard]] bool test(std::uint64_t number) const;
    void set(std::uint64_t number);

    SequenceCounts counts_;
    std::uint64_t next_ = 0;
    std::vector<std::uint64_t> received_ = std::vector<std::uint64_t>(sequence_window / 64);
};

}  // namespace vfmgr::stream
