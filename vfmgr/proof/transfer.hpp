// SPDX-License-Identifier: Apache-2.0
// Has the host write to this machine's memory and read it, by RDMA and on orders sent from here:
// what Mellanox's gpu_direct_rdma_access does, for any memory that a NIC can reach. One thread.
#pragma once

#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/random_payload.hpp"
#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/proof/transfer_order.hpp"
#include "vfmgr/rdma/dc.hpp"

namespace vfmgr::verify {

// Memory that the host accesses, registered with the NIC; the pd outlives it. Its start is the
// payload's start; `bytes` are whole chunks.
class TransferTarget {
  public:
    virtual ~TransferTarget() = default;
    [[nodiscard]] virtual MemoryRegion mr() const = 0;
    [[nodiscard]] virtual Result<void> poison(std::uint64_t bytes) = 0;
    [[nodiscard]] virtual Result<void> fill(Payload const& payload, std::uint64_t bytes) = 0;
    // Checks what the NIC wrote, from the side of the processor that uses this memory.
    [[nodiscard]] virtual Result<PayloadCheck> check(Payload const& payload,
                                                     std::uint64_t bytes) = 0;
    // Makes the NIC's writes visible to the processor that uses this memory. False: impossible, or
    // not needed.
    [[nodiscard]] virtual Result<bool> flush() = 0;
    // Called after the host wrote, and before it reads: copies where the NIC does not reach the
    // memory itself. The copies count towards the transfer's time.
    [[nodiscard]] virtual Result<void> arrived(std::uint64_t) { return {}; }
    [[nodiscard]] virtual Result<void> leaving(std::uint64_t) { return {}; }
};

// What the host may do to a target, as it is registered.
inline constexpr int transfer_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

// The guest's end of a stream of kind transfer; the destructor ends both ends. Orders and answers
// go over an RC queue pair, and so do the host's writes and reads, unless both ends have DC.
class TransferStream {
  public:
    // `kind` is one of the transfer kinds, `target` the memory that orders refer to. The pd and the
    // target outlive the stream.
    [[nodiscard]] static Result<TransferStream> open(StreamHost const& host,
                                                     Endpoint const& endpoint, StreamKind kind,
                                                     MemoryRegion const& target,
                                                     Result<Mlx5> const& mlx5 = mlx5_here());
    TransferStream(TransferStream&&) = default;
    TransferStream& operator=(TransferStream&&) = delete;
    ~TransferStream();

    [[nodiscard]] std::uint64_t message_bytes() const { return message_bytes_; }
    // "over DC", or "over RC: " and the reason.
    [[nodiscard]] std::string const& over() const { return over_; }
    // The payload from the seed that both ends know.
    [[nodiscard]] Payload payload(std::uint64_t epoch) const {
        return Payload::from_seed(*offer_.seed, epoch);
    }
    // Returns when the host has carried it out: its writes are where the NIC put them. That holds
    // for DC too, because its writes complete at both ends: an answer over another queue pair
    // proves nothing.
    [[nodiscard]] Result<TransferAnswer> order(TransferOrder const& order, Deadline deadline);

  private:
    TransferStream(StreamHost host, RegisteredMemory mail, QueuePairs all)
        : host_(std::move(host)), mail_(std::move(mail)), all_(std::move(all)) {}
    [[nodiscard]] Result<void> ask(StreamRequest request);
    StreamHost host_;
    StreamOffer offer_;
    std::uint64_t message_bytes_ = 0;
    RegisteredMemory mail_;
    QueuePairs all_;
    std::optional<DcTarget> target_;  // null unless the host goes over DC
    std::string over_;
};

// Runs rounds of many sizes until the window is over, each: poison, the host writes, check; fill,
// the host reads and checks; the host writes what only it knows, and reads it back. Figures:
// rounds, orders, bytes, stale_per_million (chunks that were stale at first, and correct after a
// flush or a second read), the host's write and read rates in MiB/s.
[[nodiscard]] Measured run_transfers(TransferStream& stream, TransferTarget& target,
                                     std::chrono::milliseconds window, Deadline deadline);

// The transfer test of main memory: opens the stream, runs, closes it.
[[nodiscard]] Result<Measured> transfer(StreamHost const& host, Endpoint const& endpoint,
                                        Load const& load, Deadline deadline,
                                        Result<Mlx5> const& mlx5 = mlx5_here());

}  // namespace vfmgr::verify
