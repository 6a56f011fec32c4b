// SPDX-License-Identifier: Apache-2.0
// Where packets are received: slots of one length, used one after the other, in memory that the
// ring does not own: this machine's, or a GPU's that is registered with a NIC. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "guest-tools/traffic/messages.hpp"
#include "guest-tools/traffic/tally.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::stream {

// What the receiver's user requested; both absent: 256 chunks, or 64 MiB where that is less.
struct RingOptions {
    std::optional<std::uint64_t> bytes{};
    std::optional<std::uint64_t> chunks{};
};
inline constexpr std::uint64_t ring_bytes_max = std::uint64_t{1} << 30;

// Returns how many packets such a ring holds. The sender chooses their length and how many make up
// a chunk, so memory has a limit. `most` is a NIC's limit: the default respects it, and a request
// beyond it fails.
[[nodiscard]] Result<std::uint32_t> ring_packets(RingOptions const& options, Opening const& opening,
                                                 std::optional<std::uint32_t> most);

class Ring {
  public:
    // Slots begin on cache lines.
    [[nodiscard]] static std::size_t stride(std::size_t slot_bytes);
    // `memory` holds stride(slot_bytes) for each of `count` slots.
    Ring(verify::Sge memory, std::size_t slot_bytes, std::uint32_t count)
        : memory_(memory), slot_bytes_(slot_bytes), count_(count) {}

    [[nodiscard]] std::uint32_t count() const { return count_; }
    [[nodiscard]] verify::Sge slot(std::uint64_t index) const;

  private:
    verify::Sge memory_;
    std::size_t slot_bytes_;
    std::uint32_t count_;
};

// The memory that a ring is made of, and the processor that reads the packets in it: this machine's
// CPU, in main memory; a GPU, in its own (guest-tools/gpu/gpu_ring.hpp). One thread.

// A packet that arrived. A GPU reads this layout: make_payload_ptx.
struct Arrival {
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
};
inline constexpr std::size_t arrivals_max = 256;  // taken at once

struct RingShape {
    std::uint64_t run = 0;
    std::uint32_t packet_bytes = 0;
    std::uint32_t packets = 1;
};

class RingMemory {
  public:
    virtual ~RingMemory() = default;
    [[nodiscard]] virtual RingPlace place() const = 0;
    // Where the NIC, or a socket, writes the packet of that slot; for a socket it is main memory. A
    // socket fills slots in order, arrivals_max at most and never beyond the last, before take().
    [[nodiscard]] virtual verify::Sge slot(std::uint32_t index) const = 0;
    // Reads and counts the packets; afterwards their slots may be overwritten.
    [[nodiscard]] virtual Result<void> take(std::span<Arrival const> arrived, Tally& tally) = 0;
};

// `endpoint`: its pd outlives the ring; null: a socket writes.
using MakeRing = std::function<Result<std::unique_ptr<RingMemory>>(
    RingShape const& shape, verify::Endpoint const* endpoint)>;

// Makes a ring in main memory.
[[nodiscard]] Result<std::unique_ptr<RingMemory>> make_host_ring(RingShape const& shape,
                                                                 verify::Endpoint const* endpoint);

}  // namespace vfmgr::stream
