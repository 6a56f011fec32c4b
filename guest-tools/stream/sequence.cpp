// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/sequence.hpp"

#include <algorithm>

namespace vfmgr::stream {
namespace {

constexpr std::uint64_t word_of(std::uint64_t number) {
    return number % sequence_window / 64;
}

constexpr std::uint64_t bit_of(std::uint64_t number) {
    return std::uint64_t{1} << number % 64;
}

}  // namespace

bool Sequence::test(std::uint64_t number) const {
    return (received_[word_of(number)] & bit_of(number)) != 0;
}

void Sequence::set(std::uint64_t number) {
    received_[word_of(number)] |= bit_of(number);
}

// Clears the places of the numbers from next_ to `number`, which held those of a window ago.
void Sequence::advance(std::uint64_t number) {
    if (number - next_ >= sequence_window)
        std::ranges::fill(received_, 0);
    else
        for (auto each = next_; each <= number; ++each) received_[word_of(each)] &= ~bit_of(each);
    counts_.missing += number - next_;
    next_ = number + 1;
}

void Sequence::take(std::uint64_t number) {
    if (number >= next_) {
        advance(number);
        set(number);
        ++counts_.received;
    } else if (next_ - number > sequence_window) {
        ++counts_.too_late;
    } else if (test(number)) {
        ++counts_.duplicates;
    } else {
        set(number);
        ++counts_.received;
        ++counts_.out_of_order;
        --counts_.missing;
    }
}

std::optional<std::uint64_t> Sequence::lost_of(std::uint64_t sent) const {
    if (sent < next_) return std::nullopt;
    return sent - counts_.received;
}

}  // namespace vfmgr::stream
