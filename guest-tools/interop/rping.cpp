// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/rping.hpp"

#include <fmt/format.h>

#include <array>

#include "api/types/stream.hpp"
#include "guest-tools/interop/lines.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
using verify::QueuePair;
constexpr std::uint64_t ping_bytes_max = cm_bytes_max;
constexpr std::uint64_t receive_id = 1;

}  // namespace

RpingConversation::RpingConversation(CmId id, Terms terms, Events events)
    : id_(std::move(id)), terms_(std::move(terms)), events_(std::move(events)) {
    thread_ = std::thread([this] { run(); });
}

RpingConversation::~RpingConversation() {
    stop();
    thread_.join();
}

void RpingConversation::stop() {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
    if (connected_) connected_->break_off();
}

void RpingConversation::run() {
    // The client notices how it ends.
    static_cast<void>(serve());
    ended_ = true;
    events_.ended();
}

// Finds the port by the interface's address, as the other tests do.
Result<RpingConversation::Rdma> RpingConversation::open() const {
    auto const& permit = terms_.permit;
    VFMGR_TRY(auto endpoint,
              verify::open_endpoint(
                  {permit.host_address, permit.host_netdev, permit.dscp.value_or(0)}, port_time));
    auto* const pd = endpoint.pd.get();
    VFMGR_TRY(auto messages,
              verify::RegisteredMemory::make(pd, 2 * rping_message_bytes, IBV_ACCESS_LOCAL_WRITE,
                                             "rping's messages"));
    VFMGR_TRY(auto ping, verify::RegisteredMemory::make(pd, ping_bytes_max, IBV_ACCESS_LOCAL_WRITE,
                                                        "rping's ping"));
    // No remote access: the client can't read or write memory here.
    VFMGR_TRY(auto pair, QueuePair::make(endpoint, {.sends = 4, .receives = 2}, 0));
    return Rdma{std::move(endpoint), std::move(messages), std::move(ping), std::move(pair)};
}

Result<void> RpingConversation::accept(Rdma& rdma) {
    VFMGR_CHECK(make_ready(id_, rdma.pair));
    auto parameters = parameters_for(rdma.pair);
    if (rdma_accept(id_.get(), &parameters) == 0) return {};
    return fail(
        cm_error(Problem::kernel_refused, "RDMA CM can't accept rping's client", "rdma_accept"));
}

Result<void> RpingConversation::serve() {
    VFMGR_TRY(auto rdma, open());
    auto const slot = rdma.messages.bytes().first(rping_message_bytes);
    VFMGR_CHECK(rdma.pair.receive(receive_id, {slot, rdma.messages.local_key()}));
    {
        std::lock_guard const lock(mutex_);
        if (stopping_) return {};
        connected_ = &rdma.pair;
    }
    auto done = accept(rdma);
    auto deadline = Steady::now() + handshake_time;
    while (done) {
        done = move(rdma, Direction::read_ping, deadline);
        deadline = terms_.until;
        if (done) done = move(rdma, Direction::write_pong, deadline);
    }
    {
        std::lock_guard const lock(mutex_);
        connected_ = nullptr;
    }
    rdma_disconnect(id_.get());
    rdma.pair.shut(Steady::now() + verify::drain_wait);
    return done;
}

// One step of a ping: receive a message with the location, move the bytes, send a message that they
// have moved.
Result<void> RpingConversation::move(Rdma& rdma, Direction direction, Deadline deadline) {
    while (messages_ == 0) VFMGR_CHECK(await(rdma, IBV_WC_RECV, deadline));
    --messages_;
    auto const slots = rdma.messages.bytes();
    auto const where = parse_rping_message(slots.first<rping_message_bytes>());
    VFMGR_CHECK(rdma.pair.receive(receive_id,
                                  {slots.first(rping_message_bytes), rdma.messages.local_key()}));
    if (where.length < 1 || where.length > ping_bytes_max)
        return fail(
            Problem::limit_exceeded,
            fmt::format("rping asks for {} bytes, more than {}", where.length, ping_bytes_max),
            "use a smaller -S");
    verify::RemoteTransfer const transfer{
        {rdma.ping.bytes().first(where.length), rdma.ping.local_key()}, where.address, where.rkey};
    bool const reads = direction == Direction::read_ping;
    VFMGR_CHECK(reads ? rdma.pair.read(0, transfer) : rdma.pair.write(0, transfer));
    VFMGR_CHECK(await(rdma, reads ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, terms_.until));
    if (!reads) {
        ++pings_;
        events_.pinged();
    }
    auto const go_ahead = slots.last(rping_message_bytes);  // its content does not matter
    VFMGR_CHECK(rdma.pair.send(0, {go_ahead, rdma.messages.local_key()}));
    return await(rdma, IBV_WC_SEND, terms_.until);
}

// The client's next message may arrive before this end's completion.
Result<void> RpingConversation::await(Rdma& rdma, ibv_wc_opcode expected, Deadline deadline) {
    std::array<ibv_wc, 8> room{};
    bool found = false;
    while (!found) {
        VFMGR_TRY(auto const completions, rdma.pair.completions().wait(room, deadline));
        VFMGR_CHECK(verify::check_completions(completions, "rping"));
        for (auto const& completion : completions) {
            found = found || completion.opcode == expected;
            if (completion.opcode != IBV_WC_RECV) continue;
            if (completion.byte_len != rping_message_bytes)
                return fail(Problem::invalid_request, "a message is not one that rping sends",
                            "use rping of rdma-core");
            ++messages_;
        }
    }
    return {};
}

}  // namespace vfmgr::interop
