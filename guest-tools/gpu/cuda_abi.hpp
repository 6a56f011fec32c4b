// SPDX-License-Identifier: Apache-2.0
// Declares what vf-guest uses of libcuda.so.1: it is built without CUDA and opens the library at
// run time. Names and numbers are those of NVIDIA's cuda.h (CUDA driver API). A function's name is
// its symbol, including _v2. Values.
#pragma once

#include <cstddef>

#include "api/os/library.hpp"

namespace vfmgr::guest::gpu {

using CudaResult = int;  // CUresult
using CudaDevice = int;
using CudaPointer = unsigned long long;  // CUdeviceptr
using CudaMemory = unsigned long long;   // CUmemGenericAllocationHandle
using CudaContext = struct CUctx_st*;
using CudaModule = struct CUmod_st*;
using CudaFunction = struct CUfunc_st*;
using CudaStream = struct CUstream_st*;  // null: the context's default stream
using CudaEvent = struct CUevent_st*;

inline constexpr CudaResult cuda_success = 0;
inline constexpr CudaResult cuda_out_of_memory = 2;
inline constexpr CudaResult cuda_no_device = 100;
inline constexpr CudaResult cuda_not_ready = 600;
inline constexpr CudaResult cuda_not_supported = 801;

// CU_DEVICE_ATTRIBUTE_…
enum class CudaAttribute : int {
    multiprocessor_count = 16,
    compute_capability_major = 75,
    compute_capability_minor = 76,
    managed_memory = 83,
    virtual_memory_management_supported = 102,
    gpu_direct_rdma_with_cuda_vmm_supported = 110,
    gpu_direct_rdma_supported = 116,
    gpu_direct_rdma_flush_writes_options = 117,
    gpu_direct_rdma_writes_ordering = 118,
    dma_buf_supported = 124,
};
inline constexpr int flush_option_host = 1;  // cuFlushGPUDirectRDMAWrites() works
inline constexpr int writes_ordering_owner =
    100;  // from here to 200 (all devices) no flush is needed

// CU_POINTER_ATTRIBUTE_…
inline constexpr int pointer_sync_memops = 6;
inline constexpr int pointer_is_managed = 8;

inline constexpr unsigned context_sync_memops = 0x80;  // CU_CTX_SYNC_MEMOPS
inline constexpr unsigned mem_attach_global = 1;       // CU_MEM_ATTACH_GLOBAL
inline constexpr unsigned stream_non_blocking = 1;     // CU_STREAM_NON_BLOCKING
inline constexpr int range_handle_dma_buf = 1;         // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
inline constexpr int jit_error_log_buffer = 5;         // CU_JIT_ERROR_LOG_BUFFER
inline constexpr int jit_error_log_bytes = 6;          // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES

struct CudaLocation {  // CUmemLocation
    int type = 1;      // CU_MEM_LOCATION_TYPE_DEVICE
    int id = 0;
};
struct CudaAllocation {  // CUmemAllocationProp
    int type = 1;        // CU_MEM_ALLOCATION_TYPE_PINNED
    int handle_types = 0;
    CudaLocation location;
    void* win32 = nullptr;
    unsigned char compression = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
};
struct CudaAccess {  // CUmemAccessDesc
    CudaLocation location;
    int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};
static_assert(sizeof(CudaAllocation) == 32 && sizeof(CudaAccess) == 12);

template <class... Arguments>
using CudaCall = LibraryFunction<Arguments...>;

// Each member holds the symbol of its name.
struct CudaCalls {
    Library library;

    CudaCall<unsigned> cuInit = library.need("cuInit");
    CudaCall<int*> cuDriverGetVersion = library.need("cuDriverGetVersion");
    CudaCall<CudaResult, char const**> cuGetErrorName = library.need("cuGetErrorName");
    CudaCall<CudaResult, char const**> cuGetErrorString = library.need("cuGetErrorString");

    CudaCall<int*> cuDeviceGetCount = library.need("cuDeviceGetCount");
    CudaCall<CudaDevice*, int> cuDeviceGet = library.need("cuDeviceGet");
    CudaCall<char*, int, CudaDevice> cuDeviceGetName = library.need("cuDeviceGetName");
    CudaCall<char*, int, CudaDevice> cuDeviceGetPCIBusId = library.need("cuDeviceGetPCIBusId");
    CudaCall<std::size_t*, CudaDevice> cuDeviceTotalMem_v2 = library.need("cuDeviceTotalMem_v2");
    CudaCall<int*, CudaAttribute, CudaDevice> cuDeviceGetAttribute =
        library.need("cuDeviceGetAttribute");

    CudaCall<CudaContext*, CudaDevice> cuDevicePrimaryCtxRetain =
        library.need("cuDevicePrimaryCtxRetain");
    CudaCall<CudaDevice> cuDevicePrimaryCtxRelease =
        library.newest("cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease");
    CudaCall<CudaContext> cuCtxSetCurrent = library.need("cuCtxSetCurrent");
    CudaCall<> cuCtxSynchronize = library.need("cuCtxSynchronize");
    CudaCall<unsigned*> cuCtxGetFlags = library.need("cuCtxGetFlags");
    // Since CUDA 12.1, else null.
    CudaCall<unsigned> cuCtxSetFlags = library.maybe("cuCtxSetFlags");

    CudaCall<std::size_t*, std::size_t*> cuMemGetInfo_v2 = library.need("cuMemGetInfo_v2");
    CudaCall<CudaPointer*, std::size_t> cuMemAlloc_v2 = library.need("cuMemAlloc_v2");
    CudaCall<CudaPointer> cuMemFree_v2 = library.need("cuMemFree_v2");
    CudaCall<CudaPointer*, std::size_t, unsigned> cuMemAllocManaged =
        library.need("cuMemAllocManaged");
    // Page-locked main memory.
    CudaCall<void**, std::size_t, unsigned> cuMemHostAlloc = library.maybe("cuMemHostAlloc");
    CudaCall<void*> cuMemFreeHost = library.maybe("cuMemFreeHost");
    CudaCall<CudaPointer, unsigned char, std::size_t> cuMemsetD8_v2 = library.need("cuMemsetD8_v2");
    CudaCall<CudaPointer, void const*, std::size_t> cuMemcpyHtoD_v2 =
        library.need("cuMemcpyHtoD_v2");
    CudaCall<void*, CudaPointer, std::size_t> cuMemcpyDtoH_v2 = library.need("cuMemcpyDtoH_v2");
    CudaCall<CudaPointer, CudaPointer, std::size_t, CudaStream> cuMemcpyDtoDAsync_v2 =
        library.need("cuMemcpyDtoDAsync_v2");
    CudaCall<void const*, int, CudaPointer> cuPointerSetAttribute =
        library.need("cuPointerSetAttribute");
    CudaCall<void*, int, CudaPointer> cuPointerGetAttribute = library.need("cuPointerGetAttribute");

    // All since CUDA 10.2, else null.
    CudaCall<std::size_t*, CudaAllocation const*, int> cuMemGetAllocationGranularity =
        library.maybe("cuMemGetAllocationGranularity");
    CudaCall<CudaMemory*, std::size_t, CudaAllocation const*, unsigned long long> cuMemCreate =
        library.maybe("cuMemCreate");
    CudaCall<CudaPointer*, std::size_t, std::size_t, CudaPointer, unsigned long long>
        cuMemAddressReserve = library.maybe("cuMemAddressReserve");
    CudaCall<CudaPointer, std::size_t, std::size_t, CudaMemory, unsigned long long> cuMemMap =
        library.maybe("cuMemMap");
    CudaCall<CudaPointer, std::size_t, CudaAccess const*, std::size_t> cuMemSetAccess =
        library.maybe("cuMemSetAccess");
    CudaCall<CudaPointer, std::size_t> cuMemUnmap = library.maybe("cuMemUnmap");
    CudaCall<CudaPointer, std::size_t> cuMemAddressFree = library.maybe("cuMemAddressFree");
    CudaCall<CudaMemory> cuMemRelease = library.maybe("cuMemRelease");

    // Since CUDA 11.7 and 11.3, else null.
    CudaCall<void*, CudaPointer, std::size_t, int, unsigned long long>
        cuMemGetHandleForAddressRange = library.maybe("cuMemGetHandleForAddressRange");
    CudaCall<int, int> cuFlushGPUDirectRDMAWrites = library.maybe("cuFlushGPUDirectRDMAWrites");

    CudaCall<CudaModule*, void const*, unsigned, int*, void**> cuModuleLoadDataEx =
        library.need("cuModuleLoadDataEx");
    CudaCall<CudaModule> cuModuleUnload = library.need("cuModuleUnload");
    CudaCall<CudaFunction*, CudaModule, char const*> cuModuleGetFunction =
        library.need("cuModuleGetFunction");
    CudaCall<CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
             CudaStream, void**, void**>
        cuLaunchKernel = library.need("cuLaunchKernel");
    CudaCall<CudaStream*, unsigned> cuStreamCreate = library.need("cuStreamCreate");
    CudaCall<CudaStream> cuStreamQuery = library.need("cuStreamQuery");
    CudaCall<CudaStream> cuStreamDestroy_v2 = library.need("cuStreamDestroy_v2");
    CudaCall<CudaEvent*, unsigned> cuEventCreate = library.need("cuEventCreate");
    CudaCall<CudaEvent, CudaStream> cuEventRecord = library.need("cuEventRecord");
    CudaCall<CudaEvent> cuEventSynchronize = library.need("cuEventSynchronize");
    CudaCall<CudaEvent> cuEventDestroy_v2 = library.need("cuEventDestroy_v2");
    CudaCall<float*, CudaEvent, CudaEvent> cuEventElapsedTime = library.need("cuEventElapsedTime");
};

}  // namespace vfmgr::guest::gpu
