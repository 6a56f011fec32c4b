// SPDX-License-Identifier: Apache-2.0
// The receiver's end of a stream over unreliable datagrams: as many receives are outstanding as the
// ring has slots, and each is posted again when its packet is counted. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "guest-tools/stream/ring_memory.hpp"
#include "guest-tools/verify/memory.hpp"

namespace vfmgr::stream {

// A datagram is at most one packet of the path MTU.
[[nodiscard]] Result<void> check_ud_packet(verify::Endpoint const& endpoint,
                                           std::uint32_t packet_bytes);

class UdReceiver {
  public:
    // `local` is the address whose GID receives; the opening has the sender's end.
    [[nodiscard]] static Result<UdReceiver> open(IpAddress const& local, RingOptions const& options,
                                                 RingMaker const& rings, Opening const& opening);
    UdReceiver(UdReceiver&&) = default;
    UdReceiver& operator=(UdReceiver&&) = delete;
    ~UdReceiver();

    // Readable when a packet has arrived, once armed.
    [[nodiscard]] int fd() const;
    [[nodiscard]] Result<void> arm();
    [[nodiscard]] QueuePairEnd const& end() const { return rdma_->pair.end(); }
    [[nodiscard]] std::uint32_t ring_packets() const { return packets_; }
    [[nodiscard]] RingPlace ring_place() const { return rdma_->ring->place(); }
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    // Checks that the device is still there.
    [[nodiscard]] Result<void> check() const;

  private:
    struct Rdma {  // members are destroyed from the last to the first
        verify::Endpoint endpoint;
        verify::RegisteredMemory header;  // of all packets: never read
        std::unique_ptr<RingMemory> ring;
        verify::QueuePair pair;
        [[nodiscard]] Result<void> receive(std::uint32_t slot);
    };
    UdReceiver(std::unique_ptr<Rdma> rdma, std::uint32_t packets)
        : rdma_(std::move(rdma)), packets_(packets) {}

    std::unique_ptr<Rdma> rdma_;
    std::uint32_t packets_;
    std::vector<ibv_wc> room_ = std::vector<ibv_wc>(arrivals_max);
    std::vector<Arrival> arrived_;
};

}  // namespace vfmgr::stream
