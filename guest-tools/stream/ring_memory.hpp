// SPDX-License-Identifier: Apache-2.0
// The memory that a ring is made of, and the processor that reads the packets in it: this machine's
// CPU, in main memory; a GPU, in its own (guest-tools/gpu/gpu_ring.hpp). One thread.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <span>

#include "guest-tools/stream/ring.hpp"
#include "guest-tools/stream/tally.hpp"
#include "guest-tools/verify/device.hpp"

namespace vfmgr::stream {

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

class RingMaker {
  public:
    virtual ~RingMaker() = default;
    // `endpoint`: its pd outlives the ring; null: a socket writes.
    [[nodiscard]] virtual Result<std::unique_ptr<RingMemory>> make(
        RingShape const& shape, verify::Endpoint const* endpoint) const = 0;
};

// Makes rings in main memory.
class HostRings final : public RingMaker {
  public:
    [[nodiscard]] Result<std::unique_ptr<RingMemory>> make(
        RingShape const& shape, verify::Endpoint const* endpoint) const override;
};

}  // namespace vfmgr::stream
