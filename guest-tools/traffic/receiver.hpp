// SPDX-License-Identifier: Apache-2.0
// Receives the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"
#include "guest-tools/traffic/ring.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::stream {

// The receiver's end of a stream over a UDP socket. One thread.

class UdpReceiver {
  public:
    struct Options {
        IpAddress local;
        std::uint16_t port = 0;  // 0: any free one
        RingShape ring{};
    };
    [[nodiscard]] static Result<UdpReceiver> open(Options const& options, RingMaker const& rings);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::uint32_t ring_packets() const { return packets_; }
    [[nodiscard]] RingPlace ring_place() const { return memory_->place(); }
    // Takes what is there, up to a batch; returns how many.
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    // Packets that reached this socket and found its buffer full, or were damaged. Call it at least
    // once per 2^32 of them, where the kernel's count wraps.
    [[nodiscard]] std::optional<std::uint64_t> lost();

  private:
    UdpReceiver(FileDescriptor socket, std::unique_ptr<RingMemory> memory, std::uint32_t packets);

    FileDescriptor socket_;
    std::unique_ptr<RingMemory> memory_;
    std::uint32_t packets_;
    std::uint32_t next_ = 0;  // slot
    std::uint64_t lost_ = 0;
    std::uint32_t drops_ = 0;  // the kernel's count at the last call
    std::vector<iovec> sges_;
    std::vector<mmsghdr> messages_;
    std::vector<Arrival> arrived_;
};

// The receiver's end of a stream over unreliable datagrams: as many receives are outstanding as the
// ring has slots, and each is posted again when its packet is counted. One thread.

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

// The source of a receiver's packets, by either transport. One thread.

class Receiver {
  public:
    struct Options {
        IpAddress local;
        std::uint16_t port = 0;  // of UDP; 0: any free one
        RingOptions ring{};
        RingMaker const& rings;
    };
    // Checks whether packets can be received there at all, into that memory.
    [[nodiscard]] static Result<void> check(Options const& options, Over over);
    // A failure here is reported to the sender.
    [[nodiscard]] static Result<Receiver> open(Options const& options, Opening const& opening);
    // Returns what the sender needs to know.
    [[nodiscard]] Acceptance acceptance() const;
    [[nodiscard]] int fd() const;
    // Takes what is there, without waiting; returns how many. At none, arm() and take() once more,
    // and then wait for fd().
    [[nodiscard]] Result<std::size_t> take(Tally& tally);
    [[nodiscard]] Result<void> arm();
    [[nodiscard]] Result<void> check() const;
    // Packets that reached this machine and were lost here; absent where that is unknown.
    [[nodiscard]] std::optional<std::uint64_t> lost();
    [[nodiscard]] std::uint32_t ring_packets() const;
    [[nodiscard]] RingPlace ring_place() const;

  private:
    using Either = std::variant<UdpReceiver, UdReceiver>;
    explicit Receiver(Either either) : either_(std::move(either)) {}

    Either either_;
};

}  // namespace vfmgr::stream
