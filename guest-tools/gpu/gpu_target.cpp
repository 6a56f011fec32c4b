// SPDX-License-Identifier: Apache-2.0
// GPU memory as what the host's transfers are about: registered by DMA-BUF or by peermem, or
// copied through main memory.
#include <fmt/format.h>

#include <bit>
#include <cerrno>

#include "guest-tools/gpu/dma_buf.hpp"
#include "guest-tools/gpu/gpu_transfer.hpp"
#include "guest-tools/verify/faults.hpp"

namespace vfmgr::guest::gpu {
namespace {

using verify::Payload;
using verify::payload_chunk_bytes;
using verify::PayloadCheck;
using verify::poison_byte;
using verify::transfer_access;

// The descriptor is closed once the NIC has the memory. Its address for the other end is the GPU's
// own, as CUDA gave it (verification.md, 4.2).
Result<verify::VerbsRegion> register_dma_buf(ibv_pd* domain, GpuContext const& context,
                                             GpuRange range) {
    VFMGR_TRY(auto const made, export_dma_buf(context, range));
    verify::VerbsRegion region(ibv_reg_dmabuf_mr(domain, made.range.offset, range.bytes,
                                                 range.address, made.descriptor.get(),
                                                 transfer_access));
    if (region) return region;
    return fail(verify::verbs_error(
        domain->context,
        fmt::format("{} bytes of the GPU can't be registered as a DMA-BUF", range.bytes),
        "ibv_reg_dmabuf_mr", errno));
}

Result<verify::VerbsRegion> register_peermem(ibv_pd* domain, GpuRange range) {
    verify::VerbsRegion region(
        ibv_reg_mr(domain, std::bit_cast<void*>(range.address), range.bytes, transfer_access));
    if (region) return region;
    return fail(verify::verbs_error(
        domain->context,
        fmt::format("{} bytes of the GPU can't be registered by their address", range.bytes),
        "ibv_reg_mr", errno));
}

// The GPU fills and checks; where that lies for the NIC is the derived classes'.
class OnGpu : public verify::TransferTarget {
  public:
    Result<void> poison(std::uint64_t bytes) override {
        VFMGR_CHECK(memory_.set(poison_byte, bytes));
        return context_.synchronize();
    }
    Result<void> fill(Payload const& payload, std::uint64_t bytes) override {
        return kernels_.fill(payload, memory_, {0, bytes / payload_chunk_bytes});
    }
    Result<PayloadCheck> check(Payload const& payload, std::uint64_t bytes) override {
        VFMGR_TRY(auto const found,
                  kernels_.check(payload, memory_, {0, bytes / payload_chunk_bytes}));
        PayloadCheck checked;
        checked.bytes_checked = bytes;
        checked.mismatches = found.bytes_wrong;
        checked.detail = found.detail;
        return checked;
    }
    Result<bool> flush() override {
        auto const call = context_.cuda().calls.cuFlushGPUDirectRDMAWrites;
        if (!call) return false;
        VFMGR_CHECK(
            context_.cuda().done("cuFlushGPUDirectRDMAWrites", call(0, writes_ordering_owner)));
        return true;
    }

  protected:
    OnGpu(GpuContext const& context, GpuPayload const& kernels, GpuMemory memory)
        : context_(context), kernels_(kernels), memory_(std::move(memory)) {}
    GpuContext const& context_;
    GpuPayload const& kernels_;
    GpuMemory memory_;
};

// The NIC reaches the GPU's memory itself.
class Direct final : public OnGpu {
  public:
    Direct(GpuContext const& context, GpuPayload const& kernels, GpuMemory memory,
           verify::VerbsRegion region)
        : OnGpu(context, kernels, std::move(memory)), region_(std::move(region)) {}
    MemoryRegion region() const override {
        return {memory_.range().address, region_->rkey, region_->length};
    }

  private:
    verify::VerbsRegion region_;  // goes before the memory
};

// The NIC reaches main memory, and each transfer is a copy more.
class Staged final : public OnGpu {
  public:
    Staged(GpuContext const& context, GpuPayload const& kernels, GpuMemory memory,
           verify::RegisteredMemory stage)
        : OnGpu(context, kernels, std::move(memory)), stage_(std::move(stage)) {}
    MemoryRegion region() const override { return stage_.remote(); }
    Result<void> arrived(std::uint64_t bytes) override {
        VFMGR_CHECK(memory_.write(0, stage_.bytes().first(bytes)));
        return context_.synchronize();
    }
    Result<void> leaving(std::uint64_t bytes) override {
        return memory_.read(0, stage_.bytes().first(bytes));
    }
    Result<bool> flush() override { return false; }  // a copy is in order

  private:
    verify::RegisteredMemory stage_;
};

}  // namespace

Result<std::unique_ptr<verify::TransferTarget>> gpu_target(Route route, ibv_pd* domain,
                                                           GpuContext const& context,
                                                           GpuPayload const& payload,
                                                           std::uint64_t bytes) {
    VFMGR_TRY(auto memory, GpuMemory::allocate(context, Allocation::plain, bytes));
    GpuRange const range{memory.range().address, bytes};
    if (route == Route::staged) {
        VFMGR_TRY(auto stage,
                  verify::RegisteredMemory::make(domain, bytes, transfer_access, "the stage"));
        return std::make_unique<Staged>(context, payload, std::move(memory), std::move(stage));
    }
    VFMGR_TRY(auto region, route == Route::dma_buf ? register_dma_buf(domain, context, range)
                                                   : register_peermem(domain, range));
    return std::make_unique<Direct>(context, payload, std::move(memory), std::move(region));
}

}  // namespace vfmgr::guest::gpu
