// SPDX-License-Identifier: Apache-2.0
// What a stream of kind transfer carries in its sends: the guest's orders to the host, and the
// host's answers, in bytes (api/openapi-guest.yaml). Data from the other end is untrusted and
// limited. Values; pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "api/types/problem.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// The source of the payload: the offer's seed, which both ends know, or a key that only the host
// has. Reading the latter back proves that the memory it wrote to truly kept the bytes.
enum class PayloadOf : std::uint32_t { seed = 1, host = 2 };

struct TransferOrder {
    TransferDirection direction = TransferDirection::write;  // of what the host does
    PayloadOf payload = PayloadOf::seed;
    std::uint64_t epoch = 0;   // of the payload
    std::uint64_t offset = 0;  // in the guest's memory and the payload; whole chunks, like `bytes`
    std::uint64_t bytes = 0;
    bool operator==(TransferOrder const&) const = default;
};

struct TransferLimits {
    std::uint64_t mr_bytes = 0;       // of the guest's memory
    std::uint64_t message_bytes = 0;  // of one transfer
};

struct TransferAnswer {
    std::uint32_t status = 0;      // ibv_wc_status
    std::uint64_t mismatches = 0;  // bytes, in a read
    std::string detail;            // of the first bad chunk; at most transfer_detail_max
    bool operator==(TransferAnswer const&) const = default;
};

inline constexpr std::size_t transfer_order_bytes = 40, transfer_answer_bytes = 128;
inline constexpr std::size_t transfer_detail_max = transfer_answer_bytes - 24;

[[nodiscard]] std::array<std::byte, transfer_order_bytes> encode(TransferOrder const& order);
[[nodiscard]] Result<TransferOrder> parse_order(std::span<std::byte const> message,
                                                TransferLimits const& limits);
// Cuts off what does not fit of the detail.
[[nodiscard]] std::array<std::byte, transfer_answer_bytes> encode(TransferAnswer const& answer);
[[nodiscard]] Result<TransferAnswer> parse_answer(std::span<std::byte const> message);

// The memory that each end of a stream of kind transfer sends from and receives into: an order, and
// its answer. The pd outlives it.
[[nodiscard]] Result<RegisteredMemory> make_transfer_mail(ibv_pd* pd);
[[nodiscard]] inline Sge order_in(RegisteredMemory const& mail) {
    return mail.sge(0, transfer_order_bytes);
}
[[nodiscard]] inline Sge answer_in(RegisteredMemory const& mail) {
    return mail.sge(transfer_order_bytes, transfer_answer_bytes);
}

}  // namespace vfmgr::verify
