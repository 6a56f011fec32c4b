// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/cuda.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string_view>

#include "guest-tools/gpu/gpu_payload.hpp"
#include "vfmgr/rdma/dc.hpp"

namespace vfmgr::guest::gpu {
namespace {

using verify::Symbols;

void load_device(Symbols& from, CudaCalls& to) {
    from.need(to.cuInit, "cuInit")
        .need(to.cuDriverGetVersion, "cuDriverGetVersion")
        .need(to.cuGetErrorName, "cuGetErrorName")
        .need(to.cuGetErrorString, "cuGetErrorString")
        .need(to.cuDeviceGetCount, "cuDeviceGetCount")
        .need(to.cuDeviceGet, "cuDeviceGet")
        .need(to.cuDeviceGetName, "cuDeviceGetName")
        .need(to.cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId")
        .need(to.cuDeviceTotalMem_v2, "cuDeviceTotalMem_v2")
        .need(to.cuDeviceGetAttribute, "cuDeviceGetAttribute")
        .need(to.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")
        .need(to.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease")
        .need(to.cuCtxSetCurrent, "cuCtxSetCurrent")
        .need(to.cuCtxSynchronize, "cuCtxSynchronize")
        .need(to.cuCtxGetFlags, "cuCtxGetFlags")
        .maybe(to.cuCtxSetFlags, "cuCtxSetFlags");
    decltype(to.cuDevicePrimaryCtxRelease) newer = nullptr;
    from.maybe(newer, "cuDevicePrimaryCtxRelease_v2");
    if (newer) to.cuDevicePrimaryCtxRelease = newer;
}

void load_memory(Symbols& from, CudaCalls& to) {
    from.need(to.cuMemGetInfo_v2, "cuMemGetInfo_v2")
        .need(to.cuMemAlloc_v2, "cuMemAlloc_v2")
        .need(to.cuMemFree_v2, "cuMemFree_v2")
        .need(to.cuMemAllocManaged, "cuMemAllocManaged")
        .need(to.cuMemsetD8_v2, "cuMemsetD8_v2")
        .need(to.cuMemcpyHtoD_v2, "cuMemcpyHtoD_v2")
        .need(to.cuMemcpyDtoH_v2, "cuMemcpyDtoH_v2")
        .need(to.cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync_v2")
        .need(to.cuPointerSetAttribute, "cuPointerSetAttribute")
        .need(to.cuPointerGetAttribute, "cuPointerGetAttribute")
        .maybe(to.cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity")
        .maybe(to.cuMemCreate, "cuMemCreate")
        .maybe(to.cuMemAddressReserve, "cuMemAddressReserve")
        .maybe(to.cuMemMap, "cuMemMap")
        .maybe(to.cuMemSetAccess, "cuMemSetAccess")
        .maybe(to.cuMemUnmap, "cuMemUnmap")
        .maybe(to.cuMemAddressFree, "cuMemAddressFree")
        .maybe(to.cuMemRelease, "cuMemRelease")
        .maybe(to.cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange")
        .maybe(to.cuFlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites");
}

void load_kernels(Symbols& from, CudaCalls& to) {
    from.need(to.cuModuleLoadDataEx, "cuModuleLoadDataEx")
        .need(to.cuModuleUnload, "cuModuleUnload")
        .need(to.cuModuleGetFunction, "cuModuleGetFunction")
        .need(to.cuLaunchKernel, "cuLaunchKernel")
        .need(to.cuStreamCreate, "cuStreamCreate")
        .need(to.cuStreamQuery, "cuStreamQuery")
        .need(to.cuStreamDestroy_v2, "cuStreamDestroy_v2")
        .need(to.cuEventCreate, "cuEventCreate")
        .need(to.cuEventRecord, "cuEventRecord")
        .need(to.cuEventSynchronize, "cuEventSynchronize")
        .need(to.cuEventDestroy_v2, "cuEventDestroy_v2")
        .need(to.cuEventElapsedTime, "cuEventElapsedTime");
}

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

Error Cuda::refusal(std::string const& call, CudaResult result) const {
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
    VFMGR_CHECK(
        done("cuDeviceGetAttribute", calls.cuDeviceGetAttribute(&value, attribute, device)));
    return value;
}

Result<void> Cuda::load(void* library, std::string const& name) {
    Symbols symbols(library);
    load_device(symbols, calls);
    load_memory(symbols, calls);
    load_kernels(symbols, calls);
    if (symbols.missing().empty()) return {};
    return fail(Problem::unsupported, fmt::format("{} has no {}", name, symbols.missing()),
                "install NVIDIA's driver 470 or newer");
}

Result<std::unique_ptr<Cuda const>> Cuda::open(std::string const& library) {
    auto* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        char const* const why = ::dlerror();
        Error error{Problem::not_found,
                    fmt::format("{} can't be opened, so no GPU can be queried", library),
                    "install the package of NVIDIA's driver that contains it: libcuda1 on Debian, "
                    "libnvidia-compute-BRANCH on Ubuntu, nvidia-driver-cuda-libs on RHEL; in a "
                    "container, let NVIDIA's runtime provide it (--gpus all, capability compute)"};
        error.causes.push_back({"dlopen", "", why ? why : "no reason given"});
        return fail(std::move(error));
    }
    auto cuda = std::make_unique<Cuda>();
    VFMGR_CHECK(cuda->load(opened, library));
    VFMGR_CHECK(cuda->done("cuInit", cuda->calls.cuInit(0)));
    VFMGR_CHECK(cuda->done("cuDriverGetVersion", cuda->calls.cuDriverGetVersion(&cuda->version)));
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
