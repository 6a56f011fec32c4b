// SPDX-License-Identifier: Apache-2.0
// The host writes to this machine's memory and reads it, by RDMA and as ordered here: what
// Mellanox's gpu_direct_rdma_access does, for whatever memory a NIC can reach. One thread.
#pragma once

#include "guest-tools/verify/bench.hpp"
#include "guest-tools/verify/dc.hpp"
#include "guest-tools/verify/guest_stream.hpp"
#include "guest-tools/verify/payload.hpp"
#include "guest-tools/verify/transfer_mail.hpp"

namespace vfmgr::verify {

// Memory that the host reaches, registered with the NIC; the domain outlives it. All of it begins
// where the payload does; `bytes` are whole chunks.
class TransferTarget {
  public:
    virtual ~TransferTarget() = default;
    [[nodiscard]] virtual MemoryRegion region() const = 0;
    [[nodiscard]] virtual Result<void> poison(std::uint64_t bytes) = 0;
    [[nodiscard]] virtual Result<void> fill(Payload const& payload, std::uint64_t bytes) = 0;
    // What the NIC wrote, by whoever uses this memory.
    [[nodiscard]] virtual Result<PayloadCheck> check(Payload const& payload,
                                                     std::uint64_t bytes) = 0;
    // Makes what the NIC wrote seen by whoever uses this memory. False: nothing can, or need be.
    [[nodiscard]] virtual Result<bool> flush() = 0;
    // After the host wrote, and before it reads: where the NIC does not reach the memory itself,
    // copies. The time that they take is the transfer's.
    [[nodiscard]] virtual Result<void> arrived(std::uint64_t) { return {}; }
    [[nodiscard]] virtual Result<void> leaving(std::uint64_t) { return {}; }
};

// What the host may do to a target, as it is registered.
inline constexpr int transfer_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

// The guest's end of a stream of kind transfer; both ends are gone with it. Orders and answers go
// over an RC queue pair, and so do the host's writes and reads, unless both ends have DC.
class TransferStream {
  public:
    // `kind` is one of the transfers', `target` what orders are about. The domain and the target
    // outlive it.
    [[nodiscard]] static Result<TransferStream> open(StreamHost const& host, VerbsPort const& port,
                                                     ibv_pd* domain, StreamKind kind,
                                                     MemoryRegion const& target,
                                                     Result<Mlx5> const& mlx5 = mlx5_here());
    TransferStream(TransferStream&&) = default;
    TransferStream& operator=(TransferStream&&) = delete;
    ~TransferStream();

    [[nodiscard]] std::uint64_t message_bytes() const { return message_bytes_; }
    // "over DC", or "over RC: " and why.
    [[nodiscard]] std::string const& over() const { return over_; }
    // Of what both ends know.
    [[nodiscard]] Payload payload(std::uint64_t epoch) const {
        return Payload::from_seed(*offer_.seed, epoch);
    }
    // Returns when the host has done it: what it wrote is where the NIC put it. That holds for DC,
    // too, as its writes complete at both ends: an answer over another queue pair proves nothing.
    [[nodiscard]] Result<TransferAnswer> order(TransferOrder const& order, Deadline deadline);

  private:
    TransferStream(StreamHost host, TransferMail mail, QueuePairs all)
        : host_(std::move(host)), mail_(std::move(mail)), all_(std::move(all)) {}
    [[nodiscard]] Result<void> ask(StreamRequest request);
    StreamHost host_;
    StreamOffer offer_;
    std::uint64_t message_bytes_ = 0;
    TransferMail mail_;
    QueuePairs all_;
    std::optional<DcTarget> target_;  // where the host goes over DC
    std::string over_;
};

// Rounds of many sizes until the window is over, each: poison, the host writes, check; fill, the
// host reads and checks; the host writes what only it knows, and reads it back. Figures: rounds,
// orders, bytes, stale_per_million (chunks that were not seen at once, and were after a flush or a
// second look), the host's write and read rates in MiB/s.
[[nodiscard]] Measured run_transfers(TransferStream& stream, TransferTarget& target,
                                     std::chrono::milliseconds window, Deadline deadline);

// Of main memory: opens the stream, runs, closes it.
[[nodiscard]] Measured transfer(StreamHost const& host, VerbsPort const& port, Load const& load,
                                Deadline deadline, Result<Mlx5> const& mlx5 = mlx5_here());

}  // namespace vfmgr::verify
