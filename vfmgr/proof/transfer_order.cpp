// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/transfer_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "api/types/guest.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {

static_assert(transfer_chunk_bytes == payload_chunk_bytes);

Result<RegisteredMemory> make_transfer_mail(ibv_pd* pd) {
    return RegisteredMemory::make(pd, transfer_order_bytes + transfer_answer_bytes,
                                  IBV_ACCESS_LOCAL_WRITE, "orders and answers");
}

namespace {

constexpr std::array<char, 8> order_magic{'v', 'f', 'm', 'g', 'r', 'T', 'O', '1'};
constexpr std::array<char, 8> answer_magic{'v', 'f', 'm', 'g', 'r', 'T', 'A', '1'};

// The messages as they travel: little-endian, as every machine that this runs on.
static_assert(std::endian::native == std::endian::little);

struct OrderMessage {
    std::array<char, 8> magic = order_magic;
    std::uint32_t direction = 0, payload = 0;
    std::uint64_t epoch = 0, offset = 0, bytes = 0;
};
static_assert(sizeof(OrderMessage) == transfer_order_bytes);

struct AnswerMessage {
    std::array<char, 8> magic = answer_magic;
    std::uint32_t status = 0, length = 0;
    std::uint64_t mismatches = 0;
    std::array<char, transfer_detail_max> detail{};
};
static_assert(sizeof(AnswerMessage) == transfer_answer_bytes);

// For a message of the right length.
template <class Message>
Message read_as(std::span<std::byte const> bytes) {
    Message message;
    std::memcpy(&message, bytes.data(), sizeof message);
    return message;
}

auto refused(std::string detail) {
    return fail(Problem::invalid_request, std::move(detail), "use the same version on VM and host");
}

}  // namespace

std::array<std::byte, transfer_order_bytes> encode(TransferOrder const& order) {
    return std::bit_cast<std::array<std::byte, transfer_order_bytes>>(OrderMessage{
        order_magic, static_cast<std::uint32_t>(order.direction),
        static_cast<std::uint32_t>(order.payload), order.epoch, order.offset, order.bytes});
}

Result<TransferOrder> parse_order(std::span<std::byte const> message,
                                  TransferLimits const& limits) {
    if (message.size() != transfer_order_bytes)
        return refused(fmt::format("an order to transfer has {} bytes instead of {}",
                                   message.size(), transfer_order_bytes));
    auto const [magic, direction, payload, epoch, offset, bytes] = read_as<OrderMessage>(message);
    if (magic != order_magic) return refused("the guest's message is not an order to transfer");
    TransferOrder const order{static_cast<TransferDirection>(direction),
                              static_cast<PayloadOf>(payload), epoch, offset, bytes};
    if (direction < 1 || direction > 2)
        return refused(fmt::format("an order's direction is {}, neither 1 nor 2", direction));
    if (payload < 1 || payload > 2)
        return refused(fmt::format("an order's payload is {}, neither 1 nor 2", payload));
    if (order.bytes == 0 || order.bytes > limits.message_bytes ||
        order.bytes % payload_chunk_bytes != 0)
        return refused(
            fmt::format("an order is for {} bytes: it must be for 64 to {}, a multiple of 64",
                        order.bytes, limits.message_bytes));
    if (order.offset % payload_chunk_bytes != 0 || order.offset > limits.mr_bytes ||
        order.bytes > limits.mr_bytes - order.offset)
        return refused(
            fmt::format("an order is for {} bytes at {}, which is misaligned or not within the "
                        "guest's {} bytes",
                        order.bytes, order.offset, limits.mr_bytes));
    return order;
}

std::array<std::byte, transfer_answer_bytes> encode(TransferAnswer const& answer) {
    AnswerMessage message;
    message.status = answer.status;
    message.length = static_cast<std::uint32_t>(
        answer.detail.copy(message.detail.data(), message.detail.size()));
    message.mismatches = answer.mismatches;
    return std::bit_cast<std::array<std::byte, transfer_answer_bytes>>(message);
}

Result<TransferAnswer> parse_answer(std::span<std::byte const> message) {
    if (message.size() != transfer_answer_bytes)
        return refused(fmt::format("the answer to an order has {} bytes instead of {}",
                                   message.size(), transfer_answer_bytes));
    auto const [magic, status, length, mismatches, detail] = read_as<AnswerMessage>(message);
    if (magic != answer_magic) return refused("the host's message is not an answer to an order");
    if (length > transfer_detail_max)
        return refused(fmt::format("the detail of an answer has {} bytes, more than {}", length,
                                   transfer_detail_max));
    TransferAnswer answer{status, mismatches, {detail.data(), length}};
    // The detail is shown on terminals.
    if (!std::ranges::all_of(answer.detail, [](char c) { return c >= ' ' && c <= '~'; }))
        return refused("the detail of an answer has unprintable characters");
    return answer;
}

}  // namespace vfmgr::verify
