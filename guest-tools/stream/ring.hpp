// SPDX-License-Identifier: Apache-2.0
// Where packets are received: slots of one length, used one after the other, in memory that the
// ring does not own: this machine's, or a GPU's that is registered with a NIC. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "guest-tools/stream/messages.hpp"
#include "guest-tools/verify/queue_pair.hpp"

namespace vfmgr::stream {

// What the receiver's user requested; both absent: 256 chunks, or 64 MiB where that is less.
struct RingOptions {
    std::optional<std::uint64_t> bytes{};
    std::optional<std::uint64_t> chunks{};
};
inline constexpr std::uint64_t ring_bytes_max = std::uint64_t{1} << 30;

// Returns how many packets such a ring holds. The sender chooses their length and how many are a
// chunk, so memory has a limit. `most` is a NIC's limit: the default respects it, a request beyond
// it fails.
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

}  // namespace vfmgr::stream
