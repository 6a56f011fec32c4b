// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint64_t chunks_by_default = 256;
constexpr std::uint64_t bytes_by_default = 64 << 20;
constexpr std::size_t cache_line = 64;

}  // namespace

Result<std::uint32_t> ring_packets(RingOptions const& options, Opening const& opening,
                                   std::optional<std::uint32_t> most) {
    std::uint64_t const packet = opening.packet_bytes;
    std::uint64_t packets = 0;
    if (options.bytes)
        packets = *options.bytes / packet;
    else if (options.chunks)
        packets = std::min(*options.chunks, ring_bytes_max) * opening.chunk;
    else
        packets = std::clamp<std::uint64_t>(chunks_by_default * opening.chunk, 1,
                                            std::max<std::uint64_t>(bytes_by_default / packet, 1));
    bool const requested = options.bytes || options.chunks;
    if (!requested && most) packets = std::min<std::uint64_t>(packets, *most);
    if (packets == 0)
        return fail(Problem::unsupported,
                    fmt::format("the receiver's ring of {} bytes can't hold a packet of {} bytes",
                                options.bytes.value_or(0), packet),
                    "give the receiver a longer --ring-bytes, or send shorter packets");
    if (packets * packet > ring_bytes_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("the receiver's ring would have {} bytes, {} are allowed",
                                packets * packet, ring_bytes_max),
                    "give the receiver fewer --chunks or --ring-bytes, or send shorter packets or "
                    "smaller chunks");
    if (most && packets > *most)
        return fail(
            Problem::limit_exceeded,
            fmt::format(
                "the receiver's ring would have {} packets, but its RDMA device takes {} receives",
                packets, *most),
            "give the receiver fewer --chunks or --ring-bytes");
    return static_cast<std::uint32_t>(packets);
}

std::size_t Ring::stride(std::size_t slot_bytes) {
    return (slot_bytes + cache_line - 1) / cache_line * cache_line;
}

verify::Sge Ring::slot(std::uint64_t index) const {
    auto const at = static_cast<std::size_t>(index % count_) * stride(slot_bytes_);
    return {memory_.bytes.subspan(at, slot_bytes_), memory_.key};
}

// A ring in main memory.

namespace {

class HostRing final : public RingMemory {
  public:
    HostRing(RingShape const& shape, std::size_t bytes)
        : own_(bytes), ring_({own_, 0}, shape.packet_bytes, shape.packets) {}
    HostRing(RingShape const& shape, verify::RegisteredMemory registered)
        : registered_(std::move(registered)),
          ring_({registered_->bytes(), registered_->local_key()}, shape.packet_bytes,
                shape.packets) {}

    RingPlace place() const override { return {}; }
    verify::Sge slot(std::uint32_t index) const override { return ring_.slot(index); }
    Result<void> take(std::span<Arrival const> arrived, Tally& tally) override {
        for (auto const& one : arrived) tally.take(ring_.slot(one.slot).bytes.first(one.bytes));
        return {};
    }

  private:
    std::vector<std::byte> own_;
    std::optional<verify::RegisteredMemory> registered_;
    Ring ring_;
};

}  // namespace

Result<std::unique_ptr<RingMemory>> make_host_ring(RingShape const& shape,
                                                   verify::Endpoint const* endpoint) {
    auto const bytes = Ring::stride(shape.packet_bytes) * shape.packets;
    if (endpoint == nullptr) return std::make_unique<HostRing>(shape, bytes);
    VFMGR_TRY(auto memory, verify::RegisteredMemory::make(endpoint->pd.get(), bytes,
                                                          IBV_ACCESS_LOCAL_WRITE, "ring"));
    return std::make_unique<HostRing>(shape, std::move(memory));
}

}  // namespace vfmgr::stream
