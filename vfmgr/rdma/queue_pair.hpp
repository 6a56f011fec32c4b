// SPDX-License-Identifier: Apache-2.0
// One queue pair: created, connected to exactly one peer, shut down cleanly. Attributes as in
// RDMA.md#queue-pair-attributes. One thread at a time, except break_off(), which wakes a waiting
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/types/guest.hpp"
#include "vfmgr/rdma/completion.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::verify {

inline constexpr std::chrono::milliseconds drain_wait{1000};  // for shut()

// Reliable connection, or unreliable datagrams: IBV_QPT_RC, IBV_QPT_UD.
enum class Transport { rc, ud };

// Precedes each received datagram: the GRH, or in its last 20 bytes the IPv4 header.
inline constexpr std::size_t ud_header_bytes = 40;

struct QueuePairOptions {
    Transport transport = Transport::rc;
    std::uint32_t sends = 0;         // outstanding requests
    std::uint32_t receives = 0;      // posted receives
    std::uint32_t receive_sges = 1;  // that one receive is scattered over, at most
};

// Which way a one-sided request moves the bytes, numbered as in orders to transfer.
enum class TransferDirection : std::uint32_t { write = 1, read = 2 };

// A one-sided request. With `notify` the other end gets a completion that carries the number.
struct RemoteTransfer {
    Sge local;
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::optional<std::uint32_t> notify{};
};

inline constexpr std::uint8_t rnr_timer_640_us = 12;  // ibv_modify_qp(3), min_rnr_timer

// DSCP is the upper six bits of the traffic class; the lower two belong to the device, for ECN.
[[nodiscard]] constexpr std::uint8_t traffic_class_of(std::uint8_t dscp) {
    return static_cast<std::uint8_t>(dscp << 2U);
}
[[nodiscard]] constexpr std::uint8_t dscp_of(std::uint8_t traffic_class) {
    return static_cast<std::uint8_t>(traffic_class >> 2U);
}

// What a peer needs to reach the port; without a queue pair.
[[nodiscard]] QueuePairEnd end_of(Endpoint const& endpoint);
// How the port reaches the peer: on Ethernet by GID, in the port's traffic class; on InfiniBand by
// LID, and by GID as well where that is needed (RDMA.md#infiniband).
[[nodiscard]] Result<ibv_ah_attr> address_of(Endpoint const& endpoint, QueuePairEnd const& peer);
[[nodiscard]] Result<VerbsAddress> make_address(Endpoint const& endpoint, QueuePairEnd const& peer);

class QueuePair {
  public:
    // In INIT: receives may be posted. `remote_access`: what the peer may do (ibv_access_flags).
    // `queue`: shared by several pairs, and large enough; null: one of its own.
    [[nodiscard]] static Result<QueuePair> make(Endpoint const& endpoint, QueuePairOptions size,
                                                unsigned remote_access,
                                                std::shared_ptr<CompletionQueue> queue = nullptr);
    // What the peer needs to connect.
    [[nodiscard]] QueuePairEnd const& end() const { return end_; }
    [[nodiscard]] CompletionQueue& completions() { return *completions_; }
    [[nodiscard]] CompletionQueue const& completions() const { return *completions_; }
    // What the device accepts with IBV_SEND_INLINE.
    [[nodiscard]] std::uint32_t inline_bytes_max() const { return inline_bytes_max_; }

    // For datagrams it sets the destination. Any sender that knows number and Q_Key can send here.
    [[nodiscard]] Result<void> connect(Endpoint const& endpoint, QueuePairEnd const& peer);
    // For a set-up by RDMA CM, which supplies the attributes; `to` names the state in errors.
    [[nodiscard]] Result<void> modify(ibv_qp_attr& attributes, int mask, char const* to);
    // Incoming data fills `into`, then `beyond`.
    [[nodiscard]] Result<void> receive(std::uint64_t id, Sge into, std::optional<Sge> beyond = {});
    [[nodiscard]] Result<void> send(std::uint64_t id, Sge from);
    [[nodiscard]] Result<void> transfer(std::uint64_t id, TransferDirection direction,
                                        RemoteTransfer const& what);
    // Addresses a caller's own request to connect()'s peer. For datagrams.
    void address(ibv_send_wr& request) const;
    // Posts a chain in one call, unchanged; unsignalled requests have no completion.
    [[nodiscard]] Result<void> post(ibv_send_wr& first);
    // To ERR, from any thread: outstanding requests complete, flushed, which wakes a thread that
    // waits for one of them; without any it sleeps on. That thread may still post until it notices.
    // Then only shut() may follow.
    void break_off();
    // To ERR, then takes every outstanding request's completion before anything is destroyed: a
    // queue pair destroyed while packets arrive is where rxe crashes (RDMA.md#shutting-down).
    void shut(Deadline deadline);
    // The route to the peer as the device has it, for the report.
    [[nodiscard]] Result<ibv_ah_attr> route() const;

  private:
    QueuePair(std::shared_ptr<CompletionQueue> completions, VerbsPair pair, QueuePairEnd end)
        : completions_(std::move(completions)), pair_(std::move(pair)), end_(std::move(end)) {}
    [[nodiscard]] bool to_error();
    [[nodiscard]] Result<void> to_init(Endpoint const& endpoint, unsigned remote_access);
    [[nodiscard]] Result<void> connect_datagrams(Endpoint const& endpoint,
                                                 QueuePairEnd const& peer);
    [[nodiscard]] Result<void> post_one(ibv_send_wr& request, Sge const& local);

    std::shared_ptr<CompletionQueue> completions_;  // outlives the pair
    VerbsPair pair_;
    VerbsAddress peer_address_;  // for datagrams
    std::uint32_t peer_number_ = 0;
    QueuePairEnd end_;
    std::uint32_t inline_bytes_max_ = 0;
    bool broken_off_ = false;
};

// Several pairs of one kind, with one completion queue.
struct QueuePairs {
    std::shared_ptr<CompletionQueue> queue;
    std::vector<QueuePair> pairs;

    [[nodiscard]] static Result<QueuePairs> make(Endpoint const& endpoint, QueuePairOptions size,
                                                 unsigned remote_access, std::size_t count);
    void shut();  // each, in drain_wait altogether
};

}  // namespace vfmgr::verify
