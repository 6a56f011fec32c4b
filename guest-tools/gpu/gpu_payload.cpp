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

// Starts several blocks per multiprocessor to keep all of them busy to the end.
Result<void> GpuPayload::launch(CudaFunction kernel, std::uint64_t chunks,
                                std::span<void*> arguments) const {
    constexpr std::uint64_t blocks_of_processor = 32;
    auto const& cuda = context_->cuda();
    auto const expected = (chunks + payload_threads - 1) / payload_threads;
    auto const most = static_cast<std::uint64_t>(std::max(processors_, 1)) * blocks_of_processor;
    auto const blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(expected, 1, most));
    return cuda.run(cuda.calls.cuLaunchKernel, kernel, blocks, 1, 1, payload_threads, 1, 1, 0,
                    nullptr, arguments.data(), nullptr);
}

Result<void> GpuPayload::launch(CudaFunction kernel, verify::Payload const& payload,
                                GpuBuffer const& memory, Chunks chunks) const {
    auto address = memory.range().address;
    auto count = chunks.count;
    auto first = chunks.first;
    auto epoch = payload.epoch;
    auto key = payload.key;
    auto result = found_.range().address;
    std::array<void*, 6> arguments{&address, &count, &first, &epoch, &result, &key};
    std::array<void*, 5> without_result{&address, &count, &first, &epoch, &key};
    if (kernel == check_) return launch(kernel, count, arguments);
    return launch(kernel, count, without_result);
}

Result<void> GpuPayload::start_read(GpuBuffer const& memory, Chunks chunks) const {
    auto address = memory.range().address;
    auto count = chunks.count;
    auto result = found_.range().address;  // check() resets it
    std::array<void*, 3> arguments{&address, &count, &result};
    return launch(read_, count, arguments);
}

Result<void> GpuPayload::start_fill(verify::Payload const& payload, GpuBuffer const& memory,
                                    Chunks chunks) const {
    return launch(fill_, payload, memory, chunks);
}

Result<void> GpuPayload::start_check(verify::Payload const& payload, GpuBuffer const& memory,
                                     Chunks chunks) const {
    return launch(check_, payload, memory, chunks);
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
    // More threads than are listed may have reported: the lowest may not be among the listed.
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
