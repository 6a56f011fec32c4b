// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_buffer.hpp"

#include <fmt/format.h>

#include <bit>
#include <cerrno>

#include "guest-tools/gpu/dma_buf.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::guest::gpu {
namespace {

// nvidia_p2p_get_pages() and DMA-BUF use pages of 64 KiB; two allocations never share one.
constexpr std::size_t gpu_page_bytes = 64 * 1024;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) {
    return (bytes + to - 1) / to * to;
}

CudaAllocation vmm_allocation(GpuContext const& context, int gpu_direct_rdma) {
    CudaAllocation expected;
    expected.location.id = context.device();
    expected.gpu_direct_rdma_capable = gpu_direct_rdma == 1 ? 1 : 0;
    return expected;
}

}  // namespace

// --- the context ---

Result<GpuContext> GpuContext::open(Cuda const& cuda, CudaDevice device) {
    CudaContext made = nullptr;
    VFMGR_CHECK(cuda.run(cuda.calls.cuDevicePrimaryCtxRetain, &made, device));
    GpuContext context(cuda, device, made);
    VFMGR_CHECK(context.use());
    context.set_sync_memops();
    return context;
}

GpuContext::~GpuContext() {
    if (!cuda_) return;
    cuda_->calls.cuCtxSetCurrent(nullptr);
    cuda_->calls.cuDevicePrimaryCtxRelease(device_);
}

Result<void> GpuContext::use() const {
    return cuda_->run(cuda_->calls.cuCtxSetCurrent, handle_);
}

// Adds to the flags already set. Some drivers accept this flag only by itself; UCX sets it so.
void GpuContext::set_sync_memops() {
    auto const& calls = cuda_->calls;
    unsigned flags = 0;
    if (!calls.cuCtxSetFlags || calls.cuCtxGetFlags(&flags) != cuda_success) return;
    if (calls.cuCtxSetFlags(flags | context_sync_memops) != cuda_success &&
        calls.cuCtxSetFlags(context_sync_memops) != cuda_success)
        return;
    syncs_all_ = calls.cuCtxGetFlags(&flags) == cuda_success && (flags & context_sync_memops) != 0;
}

Result<std::size_t> GpuContext::free_bytes() const {
    std::size_t free = 0, total = 0;
    VFMGR_CHECK(cuda_->run(cuda_->calls.cuMemGetInfo_v2, &free, &total));
    return free;
}

Result<void> GpuContext::synchronize() const {
    return cuda_->run(cuda_->calls.cuCtxSynchronize);
}

// --- buffers ---

Result<GpuBuffer> GpuBuffer::allocate(GpuContext const& context, Allocation how,
                                      std::size_t bytes) {
    GpuBuffer buffer(context, how, bytes);
    VFMGR_CHECK(how == Allocation::plain ? buffer.allocate_plain() : buffer.map_physical());
    return buffer;
}

Result<GpuBuffer> GpuBuffer::allocate(GpuContext const& context, Route route, ibv_pd* pd,
                                      std::size_t bytes, int access) {
    auto const how = route == Route::dma_buf_vmm ? Allocation::vmm : Allocation::plain;
    VFMGR_TRY(auto buffer, allocate(context, how, bytes));
    VFMGR_CHECK(buffer.reach(route, pd, access));
    return buffer;
}

Result<void> GpuBuffer::allocate_plain() {
    auto const& cuda = context_->cuda();
    auto const expected = rounded_up(bytes_, gpu_page_bytes);
    VFMGR_CHECK(cuda.run(cuda.calls.cuMemAlloc_v2, &range_.address, expected));
    range_.bytes = expected;
    unsigned const on = 1;
    return cuda.done("cuPointerSetAttribute(SYNC_MEMOPS)",
                     cuda.calls.cuPointerSetAttribute(&on, pointer_sync_memops, range_.address));
}

// Goes as far as it can: the destructor undoes what was done.
Result<void> GpuBuffer::map_physical() {
    auto const& cuda = context_->cuda();
    auto const& calls = cuda.calls;
    if (!calls.cuMemCreate || !calls.cuMemGetAllocationGranularity || !calls.cuMemAddressReserve ||
        !calls.cuMemMap || !calls.cuMemSetAccess || !calls.cuMemUnmap || !calls.cuMemAddressFree ||
        !calls.cuMemRelease)
        return fail(Problem::unsupported, "NVIDIA's driver has no virtual memory management",
                    "install NVIDIA's driver 470 or newer");
    VFMGR_TRY(int const rdma, cuda.attribute(CudaAttribute::gpu_direct_rdma_with_cuda_vmm_supported,
                                             context_->device()));
    auto const expected = vmm_allocation(*context_, rdma);
    std::size_t granularity = 0;
    VFMGR_CHECK(cuda.run(calls.cuMemGetAllocationGranularity, &granularity, &expected, 0));
    auto const whole = rounded_up(bytes_, granularity == 0 ? gpu_page_bytes : granularity);
    VFMGR_CHECK(cuda.run(calls.cuMemAddressReserve, &range_.address, whole, 0, 0, 0));
    range_.bytes = whole;
    CudaMemory physical = 0;
    VFMGR_CHECK(cuda.run(calls.cuMemCreate, &physical, whole, &expected, 0));
    auto const mapped = calls.cuMemMap(range_.address, whole, 0, physical, 0);
    mapped_ = mapped == cuda_success;
    // The mapping keeps the memory alive from here on.
    calls.cuMemRelease(physical);
    VFMGR_CHECK(cuda.done("cuMemMap", mapped));
    CudaAccess const access{{1, context_->device()}, 3};
    return cuda.run(calls.cuMemSetAccess, range_.address, whole, &access, 1);
}

GpuBuffer::~GpuBuffer() {
    if (!context_ || range_.address == 0) return;
    mr_.reset();
    auto const& calls = context_->cuda().calls;
    if (how_ == Allocation::plain) {
        calls.cuMemFree_v2(range_.address);
        return;
    }
    if (mapped_) calls.cuMemUnmap(range_.address, range_.bytes);
    calls.cuMemAddressFree(range_.address, range_.bytes);
}

Result<void> GpuBuffer::set(std::byte value, std::size_t bytes) const {
    auto const& cuda = context_->cuda();
    VFMGR_CHECK(cuda.run(cuda.calls.cuMemsetD8_v2, range_.address,
                         std::to_integer<unsigned char>(value), bytes));
    return context_->synchronize();
}

Result<void> GpuBuffer::read(std::size_t offset, std::span<std::byte> out) const {
    auto const& cuda = context_->cuda();
    return cuda.run(cuda.calls.cuMemcpyDtoH_v2, out.data(), range_.address + offset, out.size());
}

Result<void> GpuBuffer::write(std::size_t offset, std::span<std::byte const> from) const {
    auto const& cuda = context_->cuda();
    return cuda.run(cuda.calls.cuMemcpyHtoD_v2, range_.address + offset, from.data(), from.size());
}

// --- the NIC ---

Result<void> GpuBuffer::reach(Route route, ibv_pd* pd, int access) {
    switch (route) {
        case Route::dma_buf:
        case Route::dma_buf_vmm:
            return register_dma_buf(pd, access);
        case Route::peermem:
            return register_peermem(pd, access);
        case Route::staged:
            break;
    }
    VFMGR_TRY(stage_, verify::RegisteredMemory::make(pd, bytes_, static_cast<unsigned>(access),
                                                     "staging buffer"));
    return {};
}

// Closes the descriptor once the NIC has registered the memory.
Result<void> GpuBuffer::register_dma_buf(ibv_pd* pd, int access) {
    VFMGR_TRY(auto const made, export_dma_buf(*context_, {range_.address, bytes_}));
    mr_.reset(ibv_reg_dmabuf_mr(pd, made.range.offset, bytes_, range_.address,
                                made.descriptor.get(), access));
    if (mr_) return {};
    return fail(verify::verbs_error(
        pd->context, fmt::format("{} bytes of the GPU can't be registered as a DMA-BUF", bytes_),
        "ibv_reg_dmabuf_mr", errno));
}

Result<void> GpuBuffer::register_peermem(ibv_pd* pd, int access) {
    mr_.reset(ibv_reg_mr(pd, std::bit_cast<void*>(range_.address), bytes_, access));
    if (mr_) return {};
    return fail(verify::verbs_error(
        pd->context,
        fmt::format("{} bytes of the GPU can't be registered by their address", bytes_),
        "ibv_reg_mr", errno));
}

MemoryRegion GpuBuffer::remote() const {
    if (stage_) return stage_->remote();
    return {range_.address, mr_->rkey, mr_->length};
}

Result<void> GpuBuffer::arrived(std::size_t bytes) const {
    if (!stage_) return {};
    VFMGR_CHECK(write(0, stage_->bytes().first(bytes)));
    return context_->synchronize();
}

Result<void> GpuBuffer::leaving(std::size_t bytes) const {
    return stage_ ? read(0, stage_->bytes().first(bytes)) : Result<void>{};
}

}  // namespace vfmgr::guest::gpu
