// SPDX-License-Identifier: Apache-2.0
// A GPU's primary context and memory in it, released with their owners: memory before context. A
// NIC may access the memory: synchronous copies wait for what other devices write to it. One
// thread, whose current context it is.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "api/types/enum_names.hpp"
#include "guest-tools/gpu/cuda.hpp"

namespace vfmgr::guest::gpu {

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
    // itself.
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

class GpuMemory {
  public:
    // Allocates at least this many bytes. The context outlives the memory.
    [[nodiscard]] static Result<GpuMemory> allocate(GpuContext const& context, Allocation how,
                                                    std::size_t bytes);
    GpuMemory(GpuMemory&& other) noexcept
        : context_(std::exchange(other.context_, nullptr)),
          how_(other.how_),
          range_(other.range_),
          mapped_(other.mapped_) {}
    GpuMemory& operator=(GpuMemory&&) = delete;
    ~GpuMemory();

    [[nodiscard]] GpuRange range() const { return range_; }
    [[nodiscard]] Result<void> set(std::byte value, std::size_t bytes) const;
    [[nodiscard]] Result<void> read(std::size_t offset, std::span<std::byte> out) const;
    [[nodiscard]] Result<void> write(std::size_t offset, std::span<std::byte const> from) const;

  private:
    GpuMemory(GpuContext const& context, Allocation how) : context_(&context), how_(how) {}
    Result<void> allocate_plain(std::size_t bytes);
    Result<void> map_physical(std::size_t bytes);
    GpuContext const* context_;
    Allocation how_;
    GpuRange range_;
    bool mapped_ = false;
};

}  // namespace vfmgr::guest::gpu
