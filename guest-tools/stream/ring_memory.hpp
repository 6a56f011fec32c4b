// SPDX-License-Identifier: Apache-2.0
// The memory that a ring is made of, and who looks at the packets in it: this machine's CPU, in
// main memory; a GPU, in its own (guest-tools/gpu/gpu_ring.hpp). One thread.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <span>

#include "guest-tools/stream/ring.hpp"
#include "guest-tools/stream/tally.hpp"
#include "guest-tools/verify/device.hpp"

namespace vfmgr::stream {

// A packet that came. A GPU reads it so: make_payload_ptx.
struct Arrival {
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
};
inline constexpr std::size_t arrivals_max = 256;  // that are taken at once

struct RingShape {
    std::uint64_t run = 0;
    std::uint32_t packet_bytes = 0;
    std::uint32_t packets = 1;
};

class RingMemory {
  public:
    virtual ~RingMemory() = default;
    [[nodiscard]] virtual RingPlace place() const = 0;
    // Where the NIC writes the packet of that slot, or a socket: then it is main memory. A socket
    // fills slots in their order, arrivals_max at most and never beyond the last, before take().
    [[nodiscard]] virtual verify::Piece slot(std::uint32_t index) const = 0;
    // Looks at them and counts them; then their slots may be written anew.
    [[nodiscard]] virtual Result<void> take(std::span<Arrival const> arrived, Tally& tally) = 0;
};

// What writes to a ring.
struct RingNic {
    verify::VerbsPort const& port;
    ibv_pd* domain;
};

class RingMaker {
  public:
    virtual ~RingMaker() = default;
    // `nic`: its domain outlives the ring; null: a socket writes.
    [[nodiscard]] virtual Result<std::unique_ptr<RingMemory>> make(RingShape const& shape,
                                                                   RingNic const* nic) const = 0;
};

// Of main memory.
class HostRings final : public RingMaker {
  public:
    [[nodiscard]] Result<std::unique_ptr<RingMemory>> make(RingShape const& shape,
                                                           RingNic const* nic) const override;
};

}  // namespace vfmgr::stream
