// SPDX-License-Identifier: Apache-2.0
// GPU memory as the target of the host's transfers: registered by DMA-BUF or by peermem, or copied
// through main memory.
#include "guest-tools/gpu/gpu_mr.hpp"
#include "guest-tools/gpu/gpu_transfer.hpp"

namespace vfmgr::guest::gpu {
namespace {

using verify::Payload;
using verify::payload_chunk_bytes;
using verify::PayloadCheck;
using verify::poison_byte;
using verify::transfer_access;

// The GPU fills and checks; the derived classes define where the NIC accesses the data.
class OnGpu : public verify::TransferTarget {
  public:
    Result<void> poison(std::uint64_t bytes) override {
        VFMGR_CHECK(memory_.set(poison_byte, bytes));
        return gpu_.context.synchronize();
    }
    Result<void> fill(Payload const& payload, std::uint64_t bytes) override {
        return gpu_.kernels.fill(payload, memory_, {0, bytes / payload_chunk_bytes});
    }
    Result<PayloadCheck> check(Payload const& payload, std::uint64_t bytes) override {
        VFMGR_TRY(auto const found,
                  gpu_.kernels.check(payload, memory_, {0, bytes / payload_chunk_bytes}));
        PayloadCheck checked;
        checked.bytes_checked = bytes;
        checked.mismatches = found.bytes_wrong;
        checked.detail = found.detail;
        return checked;
    }
    Result<bool> flush() override {
        auto const& cuda = gpu_.context.cuda();
        if (!offers_flush(cuda, gpu_.gpu)) return false;
        VFMGR_CHECK(flush_writes(cuda));
        return true;
    }

  protected:
    OnGpu(OpenGpu const& gpu, GpuMemory memory) : gpu_(gpu), memory_(std::move(memory)) {}
    OpenGpu const gpu_;
    GpuMemory memory_;
};

// The NIC reaches the GPU's memory directly.
class Direct final : public OnGpu {
  public:
    Direct(OpenGpu const& gpu, GpuMemory memory, verify::VerbsMr mr)
        : OnGpu(gpu, std::move(memory)), mr_(std::move(mr)) {}
    MemoryRegion mr() const override { return {memory_.range().address, mr_->rkey, mr_->length}; }

  private:
    verify::VerbsMr mr_;  // destroyed before the memory
};

// The NIC reaches main memory, and each transfer costs one more copy.
class Staged final : public OnGpu {
  public:
    Staged(OpenGpu const& gpu, GpuMemory memory, verify::RegisteredMemory stage)
        : OnGpu(gpu, std::move(memory)), stage_(std::move(stage)) {}
    MemoryRegion mr() const override { return stage_.remote(); }
    Result<void> arrived(std::uint64_t bytes) override {
        VFMGR_CHECK(memory_.write(0, stage_.bytes().first(bytes)));
        return gpu_.context.synchronize();
    }
    Result<void> leaving(std::uint64_t bytes) override {
        return memory_.read(0, stage_.bytes().first(bytes));
    }
    Result<bool> flush() override { return false; }  // a copy is ordered

  private:
    verify::RegisteredMemory stage_;
};

}  // namespace

Result<std::unique_ptr<verify::TransferTarget>> gpu_target(Route route, ibv_pd* pd,
                                                           OpenGpu const& gpu,
                                                           std::uint64_t bytes) {
    auto const how = route == Route::dma_buf_vmm ? Allocation::vmm : Allocation::plain;
    VFMGR_TRY(auto memory, GpuMemory::allocate(gpu.context, how, bytes));
    GpuRange const range{memory.range().address, bytes};
    if (route == Route::staged) {
        VFMGR_TRY(auto stage,
                  verify::RegisteredMemory::make(pd, bytes, transfer_access, "staging buffer"));
        return std::make_unique<Staged>(gpu, std::move(memory), std::move(stage));
    }
    VFMGR_TRY(auto mr, route == Route::peermem
                           ? register_peermem(pd, range, transfer_access)
                           : register_dma_buf(pd, gpu.context, range, transfer_access));
    return std::make_unique<Direct>(gpu, std::move(memory), std::move(mr));
}

}  // namespace vfmgr::guest::gpu
