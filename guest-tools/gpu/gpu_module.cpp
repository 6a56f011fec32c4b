// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_module.hpp"

#include <array>
#include <bit>

#include "guest-tools/gpu/payload_ptx.hpp"

namespace vfmgr::guest::gpu {

// Reports the log of the driver's compiler on failure.
Result<GpuModule> GpuModule::load(Cuda const& cuda) {
    std::array<char, 2048> log{};
    std::array<int, 2> options{jit_error_log_buffer, jit_error_log_bytes};
    std::array<void*, 2> values{log.data(), std::bit_cast<void*>(log.size() - 1)};
    CudaModule module = nullptr;
    auto const result =
        cuda.calls.cuModuleLoadDataEx(&module, payload_ptx, 2, options.data(), values.data());
    if (result == cuda_success) return GpuModule(cuda, module);
    auto error = cuda.refusal("cuModuleLoadDataEx", result);
    error.detail = "NVIDIA's driver could not compile the kernels that check GPU memory";
    if (log.front() != '\0') error.causes.push_back({"compiler", "", log.data()});
    return fail(std::move(error));
}

GpuModule::~GpuModule() {
    if (module_) cuda_->calls.cuModuleUnload(module_);
}

Result<CudaFunction> GpuModule::kernel(char const* name) const {
    CudaFunction found = nullptr;
    VFMGR_CHECK(cuda_->done("cuModuleGetFunction",
                            cuda_->calls.cuModuleGetFunction(&found, module_, name)));
    return found;
}

}  // namespace vfmgr::guest::gpu
