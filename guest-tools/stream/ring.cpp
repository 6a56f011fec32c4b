// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/ring.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace vfmgr::stream
