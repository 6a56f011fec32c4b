// SPDX-License-Identifier: Apache-2.0
// Any bytes as an order from the guest and as an answer from the host: an accepted message is
// within the limits, and the same when written again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/proof/transfer_order.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::verify;
    auto const bytes = std::as_bytes(std::span(data, size));
    constexpr TransferLimits limits{.mr_bytes = 1 << 20, .message_bytes = 65536};
    if (auto const order = parse_order(bytes, limits)) {
        require(order->bytes >= 64 && order->bytes <= limits.message_bytes);
        require(order->offset <= limits.mr_bytes - order->bytes);
        require(std::ranges::equal(encode(*order), bytes));
    }
    if (auto const answer = parse_answer(bytes)) {
        require(answer->detail.size() <= transfer_detail_max);
        require(parse_answer(encode(*answer)).value() == *answer);
    }
    return 0;
}
