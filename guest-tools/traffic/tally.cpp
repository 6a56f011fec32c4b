// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/tally.hpp"

#include <algorithm>

#include "guest-tools/traffic/pacer.hpp"

namespace vfmgr::stream {

// Clears the places of the numbers from next_ to `number`, which held those of a window ago.
void Sequence::advance(std::uint64_t number) {
    if (number - next_ >= sequence_window)
        received_.assign(sequence_window, false);
    else
        for (auto each = next_; each <= number; ++each) received_[each % sequence_window] = false;
    counts_.missing += number - next_;
    next_ = number + 1;
}

void Sequence::take(std::uint64_t number) {
    if (number >= next_) {
        advance(number);
        received_[number % sequence_window] = true;
        ++counts_.received;
    } else if (next_ - number > sequence_window) {
        ++counts_.too_late;
    } else if (received_[number % sequence_window]) {
        ++counts_.duplicates;
    } else {
        received_[number % sequence_window] = true;
        ++counts_.received;
        ++counts_.out_of_order;
        --counts_.missing;
    }
}

std::optional<std::uint64_t> Sequence::lost_of(std::uint64_t sent) const {
    if (sent < next_) return std::nullopt;
    return sent - counts_.received;
}

namespace {

std::uint64_t microseconds(Deadline::duration time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

std::uint64_t came(SequenceCounts const& counts) {
    return counts.received + counts.duplicates + counts.too_late;
}

}  // namespace

void Tally::take(std::span<std::byte const> packet) {
    take(packet.size(), packet_number(packet, run_));
}

void Tally::take(std::size_t bytes, std::optional<std::uint64_t> number) {
    if (number && bytes == packet_bytes_)
        sequence_.take(*number);
    else
        ++foreign_;
}

void Tally::taken_at(Deadline now) {
    auto const all = came(sequence_.counts());
    if (all == timed_) return;
    timed_ = all;
    if (!first_at_) {
        first_at_ = now;
        first_ = received();
    }
    last_at_ = now;
}

Interval Tally::interval(Deadline now, std::optional<std::uint64_t> socket_lost) {
    auto const& counts = sequence_.counts();
    Interval made;
    made.until_us = microseconds(now - start_);
    made.microseconds = microseconds(now - interval_from_);
    made.packets = counts.received - before_.counts.received;
    made.bytes = made.packets * packet_bytes_;
    made.lost = static_cast<std::int64_t>(counts.missing - before_.counts.missing);
    made.out_of_order = counts.out_of_order - before_.counts.out_of_order;
    made.duplicates = counts.duplicates - before_.counts.duplicates;
    made.foreign = foreign_ - before_.foreign;
    if (socket_lost) made.socket_lost = *socket_lost - before_.socket_lost;
    before_ = {counts, foreign_, socket_lost.value_or(0)};
    interval_from_ = now;
    return made;
}

std::optional<Interval> Tally::rest(std::optional<std::uint64_t> socket_lost) {
    if (came(sequence_.counts()) == came(before_.counts)) return std::nullopt;
    return interval(std::max(last_at_, interval_from_), socket_lost);
}

Summary Tally::summary(std::optional<Ending> const& sent) const {
    Summary made{sequence_.counts()};
    made.packet_bytes = packet_bytes_;
    made.sent = sent;
    if (sent) made.lost = sequence_.lost_of(sent->packets);
    made.foreign = foreign_;
    if (!first_at_) return made;
    made.microseconds = microseconds(last_at_ - *first_at_);
    made.timed = received() - first_;
    return made;
}

}  // namespace vfmgr::stream
