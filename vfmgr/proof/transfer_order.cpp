// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/transfer_order.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "api/types/guest.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {

static_assert(transfer_chunk_bytes == payload_chunk_bytes);

Result<TransferMail> TransferMail::make(ibv_pd* pd) {
    VFMGR_TRY(auto memory, RegisteredMemory::make(pd, transfer_order_bytes + transfer_answer_bytes,
                                                  IBV_ACCESS_LOCAL_WRITE, "orders and answers"));
    return TransferMail(std::move(memory));
}

Sge TransferMail::order() const {
    return {memory_.bytes().first(transfer_order_bytes), memory_.local_key()};
}

Sge TransferMail::answer() const {
    return {memory_.bytes().last(transfer_answer_bytes), memory_.local_key()};
}

namespace {

constexpr std::array<char, 8> order_magic{'v', 'f', 'm', 'g', 'r', 'T', 'O', '1'};
constexpr std::array<char, 8> answer_magic{'v', 'f', 'm', 'g', 'r', 'T', 'A', '1'};

class Writer {
  public:
    explicit Writer(std::span<std::byte> out) : out_(out) {}
    void magic(std::array<char, 8> const& text) { copy(text.data(), text.size()); }
    void u32(std::uint32_t value) {
        value = htole32(value);
        copy(&value, sizeof value);
    }
    void u64(std::uint64_t value) {
        value = htole64(value);
        copy(&value, sizeof value);
    }
    void copy(void const* from, std::size_t bytes) {
        std::memcpy(out_.data(), from, bytes);
        out_ = out_.subspan(bytes);
    }

  private:
    std::span<std::byte> out_;
};

// Reads the fields of a message that is long enough.
class Reader {
  public:
    explicit Reader(std::span<std::byte const> in) : in_(in) {}
    bool is(std::array<char, 8> const& magic) {
        std::array<char, 8> found{};
        copy(found.data(), found.size());
        return found == magic;
    }
    std::uint32_t u32() {
        std::uint32_t value = 0;
        copy(&value, sizeof value);
        return le32toh(value);
    }
    std::uint64_t u64() {
        std::uint64_t value = 0;
        copy(&value, sizeof value);
        return le64toh(value);
    }
    void copy(void* to, std::size_t bytes) {
        std::memcpy(to, in_.data(), bytes);
        in_ = in_.subspan(bytes);
    }

  private:
    std::span<std::byte const> in_;
};

auto refused(std::string detail) {
    return fail(Problem::invalid_request, std::move(detail), "use the same version on VM and host");
}

}  // namespace

std::array<std::byte, transfer_order_bytes> encode(TransferOrder const& order) {
    std::array<std::byte, transfer_order_bytes> message{};
    Writer out(message);
    out.magic(order_magic);
    out.u32(static_cast<std::uint32_t>(order.direction));
    out.u32(static_cast<std::uint32_t>(order.payload));
    out.u64(order.epoch);
    out.u64(order.offset);
    out.u64(order.bytes);
    return message;
}

Result<TransferOrder> parse_order(std::span<std::byte const> message,
                                  TransferLimits const& limits) {
    if (message.size() != transfer_order_bytes)
        return refused(fmt::format("an order to transfer has {} bytes instead of {}",
                                   message.size(), transfer_order_bytes));
    Reader in(message);
    if (!in.is(order_magic)) return refused("the guest's message is not an order to transfer");
    auto const direction = in.u32();
    auto const payload = in.u32();
    TransferOrder const order{static_cast<TransferDirection>(direction),
                              static_cast<PayloadOf>(payload), in.u64(), in.u64(), in.u64()};
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
    std::array<std::byte, transfer_answer_bytes> message{};
    auto const length = std::min(answer.detail.size(), transfer_detail_max);
    Writer out(message);
    out.magic(answer_magic);
    out.u32(answer.status);
    out.u32(static_cast<std::uint32_t>(length));
    out.u64(answer.mismatches);
    out.copy(answer.detail.data(), length);
    return message;
}

Result<TransferAnswer> parse_answer(std::span<std::byte const> message) {
    if (message.size() != transfer_answer_bytes)
        return refused(fmt::format("the answer to an order has {} bytes instead of {}",
                                   message.size(), transfer_answer_bytes));
    Reader in(message);
    if (!in.is(answer_magic)) return refused("the host's message is not an answer to an order");
    TransferAnswer answer;
    answer.status = in.u32();
    auto const length = in.u32();
    answer.mismatches = in.u64();
    if (length > transfer_detail_max)
        return refused(fmt::format("the detail of an answer has {} bytes, more than {}", length,
                                   transfer_detail_max));
    answer.detail.resize(length);
    in.copy(answer.detail.data(), length);
    // The detail is shown on terminals.
    if (!std::ranges::all_of(answer.detail, [](char c) { return c >= ' ' && c <= '~'; }))
        return refused("the detail of an answer has unprintable characters");
    return answer;
}

}  // namespace vfmgr::verify
