// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_payload.hpp"

#include <algorithm>
#include <array>

namespace vfmgr::guest::gpu {
namespace {

using verify::payload_chunk_bytes;

constexpr std::size_t listed_max = 16;
constexpr std::uint64_t none = ~std::uint64_t{0};

// Layout that vfmgr_check writes: make_payload_ptx.
struct Found {
    std::uint64_t chunks_wrong = 0;
    std::uint64_t bytes_wrong = 0;
    std::uint64_t lowest = none;
    std::uint64_t reporters = 0;  // threads that found something
    std::array<std::uint64_t, listed_max> wrong{};
};

}  // namespace

Result<GpuPayload> GpuPayload::load(GpuContext const& context) {
    auto const& cuda = context.cuda();
    VFMGR_TRY(auto found, GpuBuffer::allocate(context, Allocation::plain, sizeof(Found)));
    VFMGR_TRY(auto module, GpuModule::load(cuda));
    GpuPayload payload(context, std::move(module), std::move(found));
    VFMGR_TRY(payload.fill_, payload.module_.kernel("vfmgr_fill"));
    VFMGR_TRY(payload.check_, payload.module_.kernel("vfmgr_check"));
    VFMGR_TRY(payload.read_, payload.module_.kernel("vfmgr_read"));
    VFMGR_TRY(payload.processors_,
              cuda.attribute(CudaAttribute::multiprocessor_count, context.device()));
    return payload;
}

// Several blocks per multiprocessor, to keep all of them busy to the end.
unsigned GpuPayload::blocks_for(std::uint64_t chunks) const {
    constexpr std::uint64_t blocks_of_processor = 32;
    auto const expected = (chunks + threads_per_block - 1) / threads_per_block;
    auto const most = static_cast<std::uint64_t>(std::max(processors_, 1)) * blocks_of_processor;
    return static_cast<unsigned>(std::clamp<std::uint64_t>(expected, 1, most));
}

Result<void> GpuPayload::start_read(GpuBuffer const& memory, Chunks chunks) const {
    // check() resets what was found.
    return cuda().launch(read_, blocks_for(chunks.count), memory.range().address, chunks.count,
                         found_.range().address);
}

Result<void> GpuPayload::start_fill(verify::Payload const& payload, GpuBuffer const& memory,
                                    Chunks chunks) const {
    return cuda().launch(fill_, blocks_for(chunks.count), memory.range().address, chunks.count,
                         chunks.first, payload.epoch, payload.key);
}

Result<void> GpuPayload::start_check(verify::Payload const& payload, GpuBuffer const& memory,
                                     Chunks chunks) const {
    return cuda().launch(check_, blocks_for(chunks.count), memory.range().address, chunks.count,
                         chunks.first, payload.epoch, found_.range().address, payload.key);
}

Result<void> GpuPayload::fill(verify::Payload const& payload, GpuBuffer const& memory,
                              Chunks chunks) const {
    VFMGR_CHECK(start_fill(payload, memory, chunks));
    return context_->synchronize();
}

Result<GpuCheck> GpuPayload::check(verify::Payload const& payload, GpuBuffer const& memory,
                                   Chunks chunks) const {
    Found found;
    VFMGR_CHECK(found_.write(0, std::as_bytes(std::span(&found, 1))));
    VFMGR_CHECK(start_check(payload, memory, chunks));
    VFMGR_CHECK(context_->synchronize());
    VFMGR_CHECK(found_.read(0, std::as_writable_bytes(std::span(&found, 1))));
    GpuCheck check{chunks.count, found.chunks_wrong, found.bytes_wrong, {}, {}};
    if (found.chunks_wrong == 0) return check;
    auto const listed = std::min<std::uint64_t>(found.reporters, listed_max);
    check.wrong.assign(found.wrong.begin(), found.wrong.begin() + static_cast<long>(listed));
    // More threads may have reported than the list has room for: it may lack the lowest.
    check.wrong.push_back(found.lowest);
    std::ranges::sort(check.wrong);
    auto const same = std::ranges::unique(check.wrong);
    check.wrong.erase(same.begin(), same.end());
    std::array<std::byte, payload_chunk_bytes> bytes{};
    auto const at = (found.lowest - chunks.first) * payload_chunk_bytes;
    VFMGR_CHECK(memory.read(at, bytes));
    check.detail = verify::check(payload, found.lowest * payload_chunk_bytes, bytes).detail;
    return check;
}

}  // namespace vfmgr::guest::gpu
