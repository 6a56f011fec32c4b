// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver API, opened at run time. Never closed: libcuda has threads of its own. Owned by
// the command; one thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <type_traits>

#include "api/types/problem.hpp"
#include "guest-tools/gpu/cuda_abi.hpp"

namespace vfmgr::guest::gpu {

inline constexpr char const* cuda_library = "libcuda.so.1";

inline constexpr unsigned threads_per_block = 256;  // of a kernel

struct Cuda {
    // Opens the library and calls cuInit.
    [[nodiscard]] static Result<std::unique_ptr<Cuda const>> open(
        std::string const& library = cuda_library);

    CudaCalls calls;
    int version = 0;  // 12080 for 12.8: the newest that the driver supports

    // Describes a call that returned anything but 0: its name, its meaning, and the remedy.
    [[nodiscard]] Error refusal(std::string call, CudaResult result) const;
    [[nodiscard]] Result<void> done(char const* call, CudaResult result) const;
    template <class... A>
    [[nodiscard]] Result<void> run(CudaCall<A...> const& call,
                                   std::type_identity_t<A>... arguments) const {
        return done(call.name(), call(arguments...));
    }
    [[nodiscard]] Result<int> attribute(CudaAttribute attribute, CudaDevice device) const;
    // Starts a kernel of payload.ptx on the default stream of the current context.
    template <class... A>
    [[nodiscard]] Result<void> launch(CudaFunction kernel, unsigned blocks, A... arguments) const {
        std::array<void*, sizeof...(A)> pointers{&arguments...};
        return run(calls.cuLaunchKernel, kernel, blocks, 1, 1, threads_per_block, 1, 1, 0, nullptr,
                   pointers.data(), nullptr);
    }
};

// Owns a module, a stream or an event, and releases it by the library's own function.
template <class T>
using CudaHandle = std::unique_ptr<std::remove_pointer_t<T>, CudaCall<T>>;

// "12.8" for 12080.
[[nodiscard]] std::string cuda_version_text(int version);

// The kernels of payload.ptx, compiled by NVIDIA's driver for its GPU in the current context, which
// outlives them. One thread, that of the context.

class GpuModule {
  public:
    [[nodiscard]] static Result<GpuModule> load(Cuda const& cuda);
    [[nodiscard]] Result<CudaFunction> kernel(char const* name) const;

  private:
    GpuModule(Cuda const& cuda, CudaModule module)
        : cuda_(&cuda), module_(module, cuda.calls.cuModuleUnload) {}
    Cuda const* cuda_;
    CudaHandle<CudaModule> module_;
};

}  // namespace vfmgr::guest::gpu
