// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/cuda.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string_view>

#include "guest-tools/gpu/gpu_payload.hpp"

namespace vfmgr::guest::gpu {
namespace {

struct ErrorRemedy {
    CudaResult result;
    Problem problem;
    std::string_view remedy;
};
// The meanings are those of cuda.h. An error that is not listed is a fault of the GPU or of
// vf-guest.
constexpr std::array remedies{
    ErrorRemedy{cuda_out_of_memory, Problem::limit_exceeded,
                "stop the programs that use the GPU's memory (nvidia-smi lists them), or use less "
                "with --size"},
    ErrorRemedy{
        46, Problem::conflict,
        "stop the process that has the GPU to itself, or allow several with nvidia-smi -c 0"},
    ErrorRemedy{
        cuda_no_device, Problem::not_found,
        "check that a GPU is present and that NVIDIA's driver has it: vf-guest doctor, nvidia-smi"},
    ErrorRemedy{101, Problem::not_found, "choose a GPU that vf-guest gpu lists"},
    ErrorRemedy{209, Problem::unsupported,
                "the GPU is older than what NVIDIA's driver compiles for"},
    ErrorRemedy{218, Problem::unsupported,
                "install a newer NVIDIA driver: this one can't compile PTX 6.4"},
    ErrorRemedy{222, Problem::unsupported,
                "install a newer NVIDIA driver: this one can't compile PTX 6.4"},
    ErrorRemedy{cuda_not_supported, Problem::unsupported,
                "this GPU or its driver does not offer it"},
    ErrorRemedy{802, Problem::unavailable,
                "start nvidia-fabricmanager, which GPUs with NVSwitch wait for: systemctl start "
                "nvidia-fabricmanager"},
    ErrorRemedy{803, Problem::unsupported,
                "reboot, or reload the kernel modules: their version is not that of libcuda.so.1"},
    ErrorRemedy{804, Problem::unsupported,
                "install the driver's own libcuda.so.1: this one belongs to a newer CUDA than the "
                "kernel modules"},
};

}  // namespace

std::string cuda_version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Error Cuda::refusal(std::string call, CudaResult result) const {
    // The version of a symbol says nothing to a user.
    if (call.ends_with("_v2")) call.resize(call.size() - 3);
    char const* name = nullptr;
    char const* text = nullptr;
    if (calls.cuGetErrorName(result, &name) != cuda_success || !name) name = "unknown";
    if (calls.cuGetErrorString(result, &text) != cuda_success || !text) text = "no reason given";
    Error error{Problem::kernel_refused, fmt::format("NVIDIA's driver refused {}", call),
                "search the kernel log for \"NVRM: Xid\": dmesg | grep NVRM"};
    for (auto const& remedied : remedies) {
        if (remedied.result != result) continue;
        error.problem = remedied.problem;
        error.remedy = remedied.remedy;
    }
    error.causes.push_back({call, fmt::format("{} {}", name, result), text});
    return error;
}

Result<void> Cuda::done(char const* call, CudaResult result) const {
    if (result == cuda_success) return {};
    return fail(refusal(call, result));
}

Result<int> Cuda::attribute(CudaAttribute attribute, CudaDevice device) const {
    int value = 0;
    VFMGR_CHECK(run(calls.cuDeviceGetAttribute, &value, attribute, device));
    return value;
}

Result<std::unique_ptr<Cuda const>> Cuda::open(std::string const& library) {
    VFMGR_TRY(auto opened,
              Library::open(
                  library, ", so no GPU can be queried",
                  "install the package of NVIDIA's driver that contains it: libcuda1 on Debian, "
                  "libnvidia-compute-BRANCH on Ubuntu, nvidia-driver-cuda-libs on RHEL; in a "
                  "container, let NVIDIA's runtime provide it (--gpus all, capability compute)"));
    auto cuda = std::make_unique<Cuda>(Cuda{{std::move(opened)}});
    if (auto const& missing = cuda->calls.library.missing(); !missing.empty())
        return fail(Problem::unsupported, fmt::format("{} has no {}", library, missing),
                    "install NVIDIA's driver 470 or newer");
    VFMGR_CHECK(cuda->run(cuda->calls.cuInit, 0));
    VFMGR_CHECK(cuda->run(cuda->calls.cuDriverGetVersion, &cuda->version));
    return cuda;
}

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

Result<CudaFunction> GpuModule::kernel(char const* name) const {
    CudaFunction found = nullptr;
    VFMGR_CHECK(cuda_->run(cuda_->calls.cuModuleGetFunction, &found, module_.get(), name));
    return found;
}

}  // namespace vfmgr::guest::gpu
