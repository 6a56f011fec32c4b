// SPDX-License-Identifier: Apache-2.0
// Declares what vf-guest uses of libnccl.so.2: it is built without the library and opens it at run
// time. Names and numbers are those of NVIDIA's nccl.h, which NCCL 2 only adds to. Its cudaStream_t
// is CUstream, and its device numbers follow the order in which CUDA lists. Values.
#pragma once

#include "guest-tools/gpu/cuda_abi.hpp"

namespace vfmgr::guest::gpu {

using NcclResult = int;  // ncclResult_t
using NcclComm = struct ncclComm*;

inline constexpr NcclResult nccl_success = 0;
inline constexpr NcclResult nccl_system_error = 2;
inline constexpr NcclResult nccl_in_progress = 7;  // of non-blocking communicators
inline constexpr int nccl_float32 = 7;             // ncclDataType_t
inline constexpr int nccl_sum = 0;                 // ncclRedOp_t

template <class... Arguments>
using NcclCall = NcclResult (*)(Arguments...);

// Each member holds the symbol of its name.
struct NcclCalls {
    NcclCall<int*> ncclGetVersion;
    char const* (*ncclGetErrorString)(NcclResult);
    char const* (*ncclGetLastError)(NcclComm);  // since 2.13, else null

    NcclCall<NcclComm*, int, int const*> ncclCommInitAll;
    NcclCall<NcclComm> ncclCommDestroy;
    // Since 2.4.
    NcclCall<NcclComm> ncclCommAbort;
    NcclCall<NcclComm, NcclResult*> ncclCommGetAsyncError;

    NcclCall<> ncclGroupStart, ncclGroupEnd;
    NcclCall<void const*, void*, std::size_t, int, int, NcclComm, CudaStream> ncclAllReduce;
};

}  // namespace vfmgr::guest::gpu
