// SPDX-License-Identifier: Apache-2.0
// A GPU's primary context and buffers in its memory, which a NIC may reach. Released with their
// owners: buffers before the context. One thread, in which the context is current.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "api/types/enum_names.hpp"
#include "guest-tools/gpu/cuda.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::guest::gpu {

using verify::Route;

class GpuContext {
  public:
    [[nodiscard]] static Result<GpuContext> open(Cuda const& cuda, CudaDevice device);
    GpuContext(GpuContext&& other) noexcept
        : cuda_(std::exchange(other.cuda_, nullptr)),
          device_(other.device_),
          handle_(other.handle_),
          syncs_all_(other.syncs_all_) {}
    GpuContext& operator=(GpuContext&&) = delete;
    ~GpuContext();

    [[nodiscard]] Cuda const& cuda() const { return *cuda_; }
    [[nodiscard]] CudaDevice device() const { return device_; }
    // Makes the context current. open() does so too; with several contexts, the last one opened or
    // used is current.
    [[nodiscard]] Result<void> use() const;
    // Whether SYNC_MEMOPS is set for all memory of the context: VMM memory has no such attribute
    // of its own.
    [[nodiscard]] bool syncs_all() const { return syncs_all_; }
    [[nodiscard]] Result<std::size_t> free_bytes() const;
    [[nodiscard]] Result<void> synchronize() const;

  private:
    GpuContext(Cuda const& cuda, CudaDevice device, CudaContext handle)
        : cuda_(&cuda), device_(device), handle_(handle) {}
    void set_sync_memops();
    Cuda const* cuda_;
    CudaDevice device_;
    CudaContext handle_;
    bool syncs_all_ = false;
};

enum class Allocation { plain, vmm };  // cuMemAlloc; cuMemCreate and cuMemMap

struct GpuRange {
    CudaPointer address = 0;
    std::size_t bytes = 0;
};

// Memory of the GPU. Synchronous copies wait for what other devices write to it.
class GpuBuffer {
  public:
    // Allocates at least this many bytes. The context outlives the buffer.
    [[nodiscard]] static Result<GpuBuffer> allocate(GpuContext const& context, Allocation how,
                                                    std::size_t bytes);
    // Allocates what that route needs, and lets a NIC reach it. `pd` outlives the buffer.
    [[nodiscard]] static Result<GpuBuffer> allocate(GpuContext const& context, Route route,
                                                    ibv_pd* pd, std::size_t bytes, int access);
    GpuBuffer(GpuBuffer&& other) noexcept
        : context_(std::exchange(other.context_, nullptr)),
          how_(other.how_),
          range_(other.range_),
          mapped_(other.mapped_),
          bytes_(other.bytes_),
          mr_(std::move(other.mr_)),
          stage_(std::move(other.stage_)) {}
    GpuBuffer& operator=(GpuBuffer&&) = delete;
    ~GpuBuffer();

    [[nodiscard]] GpuRange range() const { return range_; }
    [[nodiscard]] Result<void> set(std::byte value, std::size_t bytes) const;
    [[nodiscard]] Result<void> read(std::size_t offset, std::span<std::byte> out) const;
    [[nodiscard]] Result<void> write(std::size_t offset, std::span<std::byte const> from) const;

    // Lets a NIC write and read the requested bytes: directly, at the GPU's own address, or by
    // copies through main memory. Fails with kernel_refused or unsupported where that route is not
    // available (GPUDIRECT.md#dma-buf, GPUDIRECT.md#nvidia-peermem).
    [[nodiscard]] Result<void> reach(Route route, ibv_pd* pd, int access);
    // The key that this machine uses for the memory, and what the other end needs to reach it.
    [[nodiscard]] std::uint32_t local_key() const { return mr_->lkey; }
    [[nodiscard]] MemoryRegion remote() const;
    [[nodiscard]] bool is_staged() const { return stage_.has_value(); }
    // Copy between main memory and the GPU, where the buffer is staged: after the NIC's writes, and
    // before its reads.
    [[nodiscard]] Result<void> arrived(std::size_t bytes) const;
    [[nodiscard]] Result<void> leaving(std::size_t bytes) const;

  private:
    GpuBuffer(GpuContext const& context, Allocation how, std::size_t bytes)
        : context_(&context), how_(how), bytes_(bytes) {}
    Result<void> allocate_plain();
    Result<void> map_physical();
    Result<void> register_dma_buf(ibv_pd* pd, int access);
    Result<void> register_peermem(ibv_pd* pd, int access);
    GpuContext const* context_;
    Allocation how_;
    GpuRange range_;
    bool mapped_ = false;
    std::size_t bytes_;                              // requested
    verify::VerbsMr mr_;                             // where the NIC reaches the GPU directly
    std::optional<verify::RegisteredMemory> stage_;  // where it does not
};

}  // namespace vfmgr::guest::gpu
