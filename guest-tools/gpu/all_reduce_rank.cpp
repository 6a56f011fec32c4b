// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/all_reduce_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "guest-tools/verify/payload.hpp"

namespace vfmgr::guest::gpu {
namespace {

constexpr std::size_t block_elements = std::size_t{1} << 20U;  // on the host at a time

std::string wrong_sum_text(float found, std::uint32_t expected) {
    constexpr auto poison = std::to_integer<std::uint32_t>(verify::poison_byte) * 0x01010101U;
    if (std::bit_cast<std::uint32_t>(found) == poison) return "was never written";
    return fmt::format("is {} instead of {}", found, expected);
}

// Finds the rank whose values are missing: one faulty GPU explains more than a number.
std::optional<std::uint32_t> lacking(AllReduceValues const& values, std::size_t element,
                                     float found) {
    auto const sum = values.sum(element);
    for (std::uint32_t rank = 0; rank < values.ranks; ++rank)
        if (static_cast<float>(sum - values.of(rank, element)) == found) return rank;
    return std::nullopt;
}

}  // namespace

Error of_gpu(PciAddress const& pci, Error error) {
    error.detail = fmt::format("GPU {}: {}", to_string(pci), error.detail);
    return error;
}

Result<std::unique_ptr<AllReduceRank>> AllReduceRank::open(Cuda const& cuda, CudaGpu const& gpu) {
    auto context = GpuContext::open(cuda, gpu.device);
    if (!context) return fail(of_gpu(gpu.pci, context.error()));
    std::unique_ptr<AllReduceRank> rank(new AllReduceRank(std::move(*context), gpu.pci));
    auto const made =
        cuda.done("cuStreamCreate", cuda.calls.cuStreamCreate(&rank->stream_, stream_non_blocking));
    if (!made) return fail(of_gpu(gpu.pci, made.error()));
    return rank;
}

AllReduceRank::~AllReduceRank() {
    static_cast<void>(context_.use());
    if (stream_) context_.cuda().calls.cuStreamDestroy_v2(stream_);
}

Result<void> AllReduceRank::allocate(std::size_t bytes) {
    VFMGR_CHECK(context_.use());
    for (auto* const memory : {&sent_, &received_}) {
        auto made = GpuMemory::allocate(context_, Allocation::plain, bytes);
        if (!made) return fail(of_gpu(pci_, made.error()));
        memory->emplace(std::move(*made));
    }
    return {};
}

Result<void> AllReduceRank::fill(AllReduceValues const& values, std::uint32_t rank,
                                 std::size_t bytes) const {
    VFMGR_CHECK(context_.use());
    VFMGR_CHECK(received_->set(verify::poison_byte, bytes));
    auto const elements = bytes / sizeof(float);
    std::vector<float> block(std::min(block_elements, elements));
    for (std::size_t begin = 0; begin < elements; begin += block.size()) {
        block.resize(std::min(block.size(), elements - begin));
        for (std::size_t at = 0; at < block.size(); ++at)
            block[at] = static_cast<float>(values.of(rank, begin + at));
        VFMGR_CHECK(sent_->write(begin * sizeof(float), std::as_bytes(std::span(block))));
    }
    // The non-blocking stream does not wait for these copies either.
    return context_.synchronize();
}

Result<WrongSums> AllReduceRank::check(AllReduceValues const& values, GpuMemory const& memory,
                                       std::size_t bytes) const {
    VFMGR_CHECK(context_.use());
    WrongSums found;
    auto const elements = bytes / sizeof(float);
    std::vector<float> block(std::min(block_elements, elements));
    for (std::size_t begin = 0; begin < elements; begin += block.size()) {
        block.resize(std::min(block.size(), elements - begin));
        VFMGR_CHECK(memory.read(begin * sizeof(float), std::as_writable_bytes(std::span(block))));
        for (std::size_t at = 0; at < block.size(); ++at) {
            auto const expected = values.sum(begin + at);
            if (block[at] == static_cast<float>(expected)) continue;
            if (found.wrong++ > 0) continue;
            found.first = begin + at;
            found.what = wrong_sum_text(block[at], expected);
            found.lacks = lacking(values, found.first, block[at]);
        }
    }
    return found;
}

}  // namespace vfmgr::guest::gpu
