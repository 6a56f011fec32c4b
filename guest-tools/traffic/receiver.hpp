// SPDX-License-Identifier: Apache-2.0
// Receives the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "api/types/addresses.hpp"
#include "guest-tools/traffic/ring.hpp"

namespace vfmgr::stream {

// A datagram is at most one packet of the path MTU.
[[nodiscard]] Result<void> check_ud_packet(verify::Endpoint const& endpoint,
                                           std::uint32_t packet_bytes);

struct ReceiveOptions {
    IpAddress local;
    std::uint16_t port = default_port;  // of TCP, and of UDP; 0: any free ones
    RingOptions ring{};
    MakeRing make_ring = make_host_ring;              // what the ring is made of
    std::optional<Over> over{};                       // absent: as the sender requests
    std::optional<std::chrono::milliseconds> time{};  // ends it, whatever has arrived
};

class Receiver {
  public:
    // Checks whether packets can be received there at all, into that memory.
    [[nodiscard]] static Result<void> check(ReceiveOptions const& options, Over over);
    // A failure here is reported to the sender.
    [[nodiscard]] static Result<std::unique_ptr<Receiver>> open(ReceiveOptions const& options,
                                                                Opening const& opening);
    virtual ~Receiver() = default;
    // Returns what the sender needs to know.
    [[nodiscard]] virtual Acceptance acceptance() const = 0;
    // Readable when a packet has arrived, once armed.
    [[nodiscard]] virtual int fd() const = 0;
    // Takes what is there, without waiting, up to a batch; returns how many. If that is 0, call
    // arm() and take() once more, and then wait for fd().
    [[nodiscard]] virtual Result<std::size_t> take(Tally& tally) = 0;
    [[nodiscard]] virtual Result<void> arm() { return {}; }
    // Checks that the device is still there.
    [[nodiscard]] virtual Result<void> check() const { return {}; }
    // Packets that reached this machine and were lost here; absent where that is unknown. Call it
    // at least once per 2^32 of them, where the kernel's count wraps.
    [[nodiscard]] virtual std::optional<std::uint64_t> lost() { return std::nullopt; }
    [[nodiscard]] virtual std::uint32_t ring_packets() const = 0;
    [[nodiscard]] virtual RingPlace ring_place() const = 0;
};

// The receiver of a stream test: waits for one sender, counts what arrives, and reports it each
// second. Blocks; one thread.

struct ReceiveEvents {
    std::function<void(std::uint16_t port)> ready;
    std::function<void(Opening const&, IpAddress const& sender, RingPlace const&)> begun;
    std::function<void(Error const&)> refused;    // a sender; the next one is awaited
    std::function<void(Interval const&)> second;  // and the rest at the end
};

// Returns an Error when no stream began or this end failed, else a Summary, whatever was lost.
// `stop` ends it when it is readable; -1: none.
[[nodiscard]] Result<Summary> receive(ReceiveOptions const& options, ReceiveEvents const& events,
                                      int stop);

}  // namespace vfmgr::stream
